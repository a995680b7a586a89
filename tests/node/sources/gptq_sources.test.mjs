// GPTQ folders of others as sources: 2, 3, 4 and 8 bits, groups in any order (desc_act). Packed here, bit by bit.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { parsed, safetensors } from '../written_model.mjs';

const [rows, columns, groups] = [32, 96, 3];
let state = 7;
const random = (limit) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
};

/** Bit streams down the columns of a matrix [n, columns] of codes: [n * bits / 32, columns] words. */
function streams(matrix, width, bits) {
  const words = new Int32Array((matrix.length * bits) / 32);
  matrix.forEach((code, at) => {
    const [i, column] = [Math.floor(at / width), at % width];
    for (let bit = 0; bit < bits; ++bit) {
      const place = i * bits + bit;
      if ((code >> bit) & 1) words[(place >> 5) * width + column] |= 1 << (place & 31);
    }
  });
  return words;
}
const turned = (matrix, width) =>
  Array.from(
    matrix,
    (_, at) => matrix[(at % (matrix.length / width)) * width + Math.floor(at / (matrix.length / width))],
  );

/** A folder, and the values that it holds. */
function gptqFolder(folder, { bits, version, zero = version === 1 ? 'middle' : 'any', ordered = false, bad = false }) {
  mkdirSync(folder);
  const levels = 2 ** bits;
  const codes = Array.from({ length: columns * rows }, () => random(levels)); // [in, out]
  const isSymmetric = zero !== 'any';
  const zeros = Array.from({ length: groups * rows }, () => (isSymmetric ? levels / 2 : random(levels)));
  const index = Int32Array.from({ length: columns }, (_, i) => (ordered ? Math.floor(i / 32) : random(groups)));
  const halves = Uint16Array.from({ length: groups * rows }, () => 0x2400 + random(0x800)); // 2^-6 and more
  const scaleOf = (bits16) => 2 ** ((bits16 >> 10) - 15) * (1 + (bits16 & 0x3ff) / 1024);
  // Version 1 stores them less 1, and 0 as the largest code; some writers forget it where they are symmetric.
  const stored = zeros.map((each) => (version === 1 && zero !== 'forgotten' ? (each - 1) & (levels - 1) : each));
  const qzeros = turned(streams(turned(stored, rows), groups, bits), groups);
  const values = Float32Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    const place = index[column] * rows + row;
    return (codes[column * rows + row] - zeros[place]) * scaleOf(halves[place]);
  });
  if (bad) index[40] = groups;
  writeFileSync(
    join(folder, 'model.safetensors'),
    safetensors({
      'layer.qweight': { dtype: 'I32', shape: [(columns * bits) / 32, rows], data: streams(codes, rows, bits) },
      'layer.qzeros': { dtype: 'I32', shape: [groups, (rows * bits) / 32], data: Int32Array.from(qzeros) },
      'layer.scales': { dtype: 'F16', shape: [groups, rows], data: halves },
      'layer.g_idx': { dtype: 'I32', shape: [columns], data: index },
    }),
  );
  const quantization_config = {
    quant_method: 'gptq',
    bits,
    group_size: 32,
    desc_act: !ordered,
    sym: isSymmetric,
    checkpoint_format: version === 1 ? 'gptq' : 'gptq_v2',
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ quantization_config }));
  return values;
}
const plainModel = (values) => safetensors({ 'layer.weight': { dtype: 'F32', shape: [rows, columns], data: values } });

for (const bits of [2, 3, 4, 8])
  for (const [version, zero] of [
    [1, 'middle'],
    [1, 'forgotten'],
    [1, 'any'],
    [2, 'any'],
  ])
    for (const ordered of [false, true])
      test(`gptq of ${bits} bits, version ${version}, ${zero}, ${ordered ? 'groups in order' : 'desc_act'}`, async (t) => {
        const quantizer = await quantizerFor(t);
        const folder = join(scratchFolder(t), 'gptq');
        const values = gptqFolder(folder, { bits, version, zero, ordered });
        const model = await modelFor(t, quantizer, folder);
        const [compared] = (await quantizer.compare(await modelFor(t, quantizer, plainModel(values)), model)).tensors;
        assert.equal(compared.error.maxAbs, 0);
        // And as a source, into int8 per channel: the codes are those of the plain values.
        const config = { global_quant_config: { weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 } } };
        const written = async (source, name) => {
          const target = join(folder, name);
          await quantizer.quantizeModel(source, config, { target });
          const { header, data } = parsed(new Uint8Array(readFileSync(join(target, 'model.safetensors'))));
          return Object.fromEntries(
            Object.keys(header)
              .filter((key) => key[0] !== '_')
              .map((key) => [key, data(key)]),
          );
        };
        const expected = await written(await modelFor(t, quantizer, plainModel(values)), 'plain');
        assert.deepEqual(await written(model, 'again'), expected);
      });

test('gptq: an index of a missing group is an error', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'gptq');
  gptqFolder(folder, { bits: 4, version: 1, bad: true });
  const model = await modelFor(t, quantizer, folder);
  const config = { global_quant_config: { weight: { dtype: 'bfloat16' } } };
  await assert.rejects(quantizer.quantizeModel(model, config, { target: join(folder, 'out') }), {
    code: 'value-not-finite',
  });
});

test('gptq of 2 and 3 bits is written and read back', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const data = Float32Array.from({ length: rows * columns }, () => random(2000) / 1000 - 1);
  const model = await modelFor(t, quantizer, plainModel(data));
  for (const dtype of ['int2', 'int3', 'uint2', 'uint3']) {
    const spec = { dtype, qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: dtype.startsWith('int') };
    const config = { global_quant_config: { weight: spec } };
    const target = join(folder, dtype);
    const report = await quantizer.quantizeModel(model, config, { target, format: 'gptq' });
    const written = await modelFor(t, quantizer, target);
    const [compared] = (await quantizer.compare(model, written)).tensors;
    const { error } = report.tensors[0]; // its sums have another order
    assert.equal(compared.error.maxAbs, error.maxAbs, dtype);
    assert.ok(Math.abs(compared.error.sqnrDb - error.sqnrDb) < 1e-5, dtype);
    assert.ok(compared.error.sqnrDb > (dtype.endsWith('2') ? 4 : 10), `${dtype}: ${compared.error.sqnrDb} dB`);
    assert.equal(
      JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')).quantization_config.bits,
      Number(dtype.at(-1)),
    );
  }
});
