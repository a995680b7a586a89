// NumPy files as models: arrays as they are, archives stored and compressed, and every lie an archive can tell.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { npyFile, npzFile } from './npy_file.mjs';

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

test('a single matrix is named after its file and is a weight', async (t) => {
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
  const [{ spec }] = (await quantizer.plan(model, preset, { format: 'fake-quantized' })).tensors;
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

test('a matrix in an archive is quantized under any name that does not say what it is', async (t) => {
  const quantizer = await quantizerFor(t);
  const kept = ['a.bias', 'a.weight', 'layer.input', 'layer.output'];
  const given = ['scores', 'enc_w', 'layers.0.kernel', 'params/dense/w', ...kept];
  const names = (suffixed) => given.map((name) => (kept.includes(name) ? name : `${name}${suffixed}`)).sort();
  for (const deflate of [false, true]) {
    const archive = npzFile(given.map((name) => ({ name: `${name}.npy`, bytes: matrix, deflate })));
    const model = await modelFor(t, quantizer, new Blob([archive]));
    assert.deepEqual(model.tensors.map(({ name }) => name).sort(), names('.weight'));
    const config = quantizer.presetConfig('int8', { layers: { enc_w: 'int4_wo_32' } });
    const { tensors, diagnostics } = await quantizer.plan(model, config, { format: 'fake-quantized' });
    const dtypes = Object.fromEntries(tensors.map(({ name, spec }) => [name, spec?.dtype]));
    assert.deepEqual([dtypes['scores.weight'], dtypes['enc_w.weight']], ['int8', 'int4']);
    assert.deepEqual(diagnostics.filter(({ code }) => code === 'pattern-unused' && !/lm_head/.test(code)).length, 0);
  }
});

const one = () => npzFile([{ name: 'a.weight.npy', bytes: matrix }]);

test('arrays cannot be opened together with other formats', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const paths = ['a.npy', 'b.safetensors', 'c.npz'].map((name) => join(folder, name));
  writeFileSync(paths[0], matrix);
  writeFileSync(paths[1], safetensorsFile());
  writeFileSync(paths[2], one());
  await assert.rejects(quantizer.open([paths[0], paths[1]]), { code: 'format-unknown', message: /not a \.npy file/ });
  await assert.rejects(quantizer.open([paths[0], paths[2]]), { code: 'format-unknown', message: /is a whole model/ });
});
