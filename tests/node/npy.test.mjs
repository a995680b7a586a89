// NumPy files as models: arrays as they are, archives stored and compressed, and every lie an archive can tell.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { npyFile, npzFile } from './npy_file.mjs';
import { modelFor, quantizerFor, scratchFolder } from './scratch.mjs';

const rows = 64;
const columns = 128;
const values = Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(i * 0.37) * (1 + (i % 7)));
const half = Uint16Array.from({ length: columns }, (_, i) => 0x3c00 + i);
const matrix = npyFile('<f4', [rows, columns], values);
const vector = npyFile('<f2', [columns], half);
const preset = 'int4_wo_32';

/** Header and data of a safetensors file. */
function tensorsOf(path) {
  const bytes = readFileSync(path);
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  return Object.fromEntries(
    Object.entries(header)
      .filter(([name]) => name !== '__metadata__')
      .map(
        ([
          name,
          {
            dtype,
            shape,
            data_offsets: [begin, end],
          },
        ]) => [name, { dtype, shape, bytes: bytes.subarray(8 + length + begin, 8 + length + end) }],
      ),
  );
}

/** The same two tensors as safetensors: what every archive must give. */
function safetensorsFile() {
  const header = Buffer.from(
    JSON.stringify({
      'a.weight': { dtype: 'F32', shape: [rows, columns], data_offsets: [0, values.byteLength] },
      'b.bias': { dtype: 'F16', shape: [columns], data_offsets: [values.byteLength, values.byteLength + 2 * columns] },
    }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, Buffer.from(values.buffer), Buffer.from(half.buffer)]);
}

test('a matrix of its own is called after its file, and is a weight', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const path = join(folder, 'scores.npy');
  writeFileSync(path, matrix);
  const model = await modelFor(t, quantizer, path);
  assert.equal(model.format, 'npy');
  assert.equal(model.name, 'scores');
  assert.deepEqual(
    model.tensors.map(({ name, dtype, shape, layerType }) => ({ name, dtype, shape, layerType })),
    [{ name: 'scores.weight', dtype: 'F32', shape: [rows, columns], layerType: 'Linear' }],
  );
  const target = join(folder, 'out');
  await quantizer.quantizeModel(model, preset, { target, format: 'fake-quantized' });
  const [{ spec }] = quantizer.plan(model, preset, { format: 'fake-quantized' }).tensors;
  const written = tensorsOf(join(target, 'model.safetensors'))['scores.weight'];
  const expected = quantizer.fakeQuantize({ data: values, shape: [rows, columns] }, spec);
  assert.deepEqual(new Float32Array(Uint8Array.from(written.bytes).buffer), expected);
  await assert.rejects(quantizer.open(path, { format: 'gguf' }), { code: 'format-unknown', message: /npy, not gguf/ });
});

for (const [how, threads] of [
  ['in this thread', 0],
  ['in workers', 2],
]) {
  test(`archives give what safetensors give, ${how}`, async (t) => {
    const quantizer = await quantizerFor(t, { threads });
    const folder = scratchFolder(t);
    const plain = join(folder, 'plain.safetensors');
    writeFileSync(plain, safetensorsFile());
    const out = async (source, name) => {
      const model = await modelFor(t, quantizer, source);
      const target = join(folder, `${name}-out.safetensors`);
      await quantizer.quantizeModel(model, preset, { target, format: 'compressed-tensors' });
      return tensorsOf(target);
    };
    const expected = await out(plain, 'plain');
    const pair = (options) => [
      { name: 'a.weight.npy', bytes: matrix, ...options },
      { name: 'b.bias.npy', bytes: vector, ...options },
    ];
    const archives = {
      stored: npzFile(pair()),
      wide: npzFile(pair({ wide: true }), { wide: true }),
      deflated: npzFile(pair({ deflate: true }), { comment: 'PK\x05\x06 is no directory' }),
      mixed: npzFile([pair()[0], pair({ deflate: true })[1]]),
      far: npzFile([...pair(), { name: 'c.npy', bytes: npyFile('|u1', [300000], new Uint8Array(300000)) }]),
    };
    for (const [name, bytes] of Object.entries(archives)) {
      const path = join(folder, `${name}.npz`);
      writeFileSync(path, bytes);
      const { c, ...written } = await out(path, name);
      assert.deepEqual(written, expected, name);
      assert.equal(c !== undefined, name === 'far');
    }
    const names = ['a.weight.npy', 'b.bias.npy'].map((name) => join(folder, name));
    writeFileSync(names[0], matrix);
    writeFileSync(names[1], vector);
    assert.deepEqual(await out(names, 'list'), expected);
    assert.deepEqual(await out(new Blob([archives.deflated]), 'blob'), expected);
  });
}

const one = (changes) => npzFile([{ name: 'a.weight.npy', bytes: matrix, ...changes }]);
const two = (first, second) =>
  npzFile([
    { name: 'a.npy', bytes: matrix, ...first },
    { name: 'b.npy', bytes: vector, ...second },
  ]);
const bomb = Buffer.alloc(1 << 20);

/** [what, bytes, code, message] */
const hostile = [
  ['cut off', one().subarray(0, 500), 'file-truncated', /no directory/],
  ['nothing but a directory', npzFile([]), 'file-invalid', /0 entries/],
  ['a path upwards', one({ name: '../a.npy' }), 'file-invalid', /path out of the archive/],
  ['a path upwards inside', one({ name: 'x/../../a.npy' }), 'file-invalid', /path out of the archive/],
  ['an absolute path', one({ name: '/etc/a.npy' }), 'file-invalid', /path out of the archive/],
  ['a path of Windows', one({ name: 'C:\\a.npy' }), 'file-invalid', /path out of the archive/],
  ['one name twice', two({}, { name: 'a.npy' }), 'tensor-duplicate', /twice/],
  ['two entries at one place', two({}, { central: { at: 0 } }), 'file-invalid', /next entry/],
  [
    'an entry that goes over the next',
    two({ central: { packed: matrix.length + 9, bytes: matrix.length + 9 } }),
    'file-invalid',
    /next entry/,
  ],
  ['an entry behind the directory', one({ central: { at: 99999999 } }), 'file-invalid', /next entry/],
  ['sizes that differ', two({ local: { packed: 1, bytes: 1 } }), 'file-invalid', /differ in name, sizes or method/],
  ['names that differ', one({ local: { name: 'b.weight.npy' } }), 'file-invalid', /differ in name/],
  ['a method that differs', one({ local: { method: 8 } }), 'file-invalid', /differ in name/],
  ['encrypted', one({ local: { flags: 1 }, central: { flags: 1 } }), 'file-invalid', /encrypted/],
  ['another method', one({ local: { method: 14 }, central: { method: 14 } }), 'file-invalid', /method 14/],
  ['stored bytes that are fewer', one({ central: { bytes: 1e6 } }), 'file-invalid', /cannot be/],
  ['more than deflate can make', one({ deflate: true, central: { bytes: 4e9 } }), 'file-invalid', /cannot be/],
  [
    'a size beyond 2^63',
    one({ wide: true, central: { bytes: 2n ** 63n, packed: 2n ** 63n } }),
    'file-invalid',
    /next entry/,
  ],
  [
    'a directory that is too long',
    npzFile([{ name: 'a.npy', bytes: matrix }], { end: { size: 1e9 } }),
    'file-invalid',
    /does not end/,
  ],
  [
    'a directory with more entries',
    npzFile([{ name: 'a.npy', bytes: matrix }], { end: { entries: 2 } }),
    'file-invalid',
    /2 entries/,
  ],
  [
    'a bomb that declares less',
    one({ bytes: bomb, deflate: true, local: { bytes: 2048 }, central: { bytes: 2048 } }),
    'file-invalid',
    /more than the 2048 bytes/,
  ],
  [
    'a stream that ends early',
    one({ deflate: true, local: { bytes: matrix.length + 1 }, central: { bytes: matrix.length + 1 } }),
    'file-invalid',
    /it declares/,
  ],
  [
    'no stream at all',
    one({ deflate: true, packed: Buffer.alloc(matrix.length, 255) }),
    'file-invalid',
    /cannot be inflated/,
  ],
  ['a wrong checksum', one({ deflate: true, local: { crc: 1 }, central: { crc: 1 } }), 'file-invalid', /checksum/],
  ['no array inside', one({ name: 'archive/data.pkl' }), 'format-unknown', /PyTorch/],
  ['another file inside', one({ bytes: Buffer.from('hello, this is text') }), 'file-invalid', /begin as .npy/],
  ['objects', npyFile('|O', [1], new Uint8Array(8)), 'dtype-unsupported', /pickled/],
  ['big-endian', npyFile('>f4', [2], new Uint8Array(8)), 'dtype-unsupported', /astype\('<f4'\)/],
  [
    'columns first',
    npyFile('<f4', [2, 2], new Uint8Array(16), { fortran: true }),
    'dtype-unsupported',
    /ascontiguousarray/,
  ],
  ['data cut off', matrix.subarray(0, 1000), 'file-truncated', /need 32768 bytes/],
];

test(`${hostile.length} hostile files of NumPy`, async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [what, bytes, code, message] of hostile)
    await t.test(what, () => assert.rejects(quantizer.open(new Uint8Array(bytes)), { code, message }));
  assert.equal(quantizer.liveObjects, 0);
});

test('arrays do not stand beside other formats', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const paths = ['a.npy', 'b.safetensors', 'c.npz'].map((name) => join(folder, name));
  writeFileSync(paths[0], matrix);
  writeFileSync(paths[1], safetensorsFile());
  writeFileSync(paths[2], one());
  await assert.rejects(quantizer.open([paths[0], paths[1]]), { code: 'format-unknown', message: /no \.npy file/ });
  await assert.rejects(quantizer.open([paths[0], paths[2]]), { code: 'format-unknown', message: /model of its own/ });
});
