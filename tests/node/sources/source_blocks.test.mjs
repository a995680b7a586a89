// What config.json of a quantized checkpoint says is read, refused at its place, or remarked; blocks that have outlived
// their weights go, wherever they stand.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { files, modelFor, scratchFolder } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const quantizer = await createQuantizer({ threads: 0 });
after(() => quantizer[Symbol.asyncDispose]());

const asValues = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: [] };
const floats = (shape, seed = 1) => ({
  dtype: 'F32',
  shape,
  data: noise(
    shape.reduce((a, b) => a * b, 1),
    seed,
  ),
});
const plain = { 'a.weight': floats([64, 64]) };

/** Opens a folder of `tensors` with this config.json and files next to it. */
function opened(t, tensors, config, siblings = {}) {
  const folder = join(scratchFolder(t), 'model');
  mkdirSync(folder);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  for (const [name, content] of Object.entries({ 'config.json': { model_type: 'x', ...config }, ...siblings }))
    writeFileSync(join(folder, name), JSON.stringify(content));
  return modelFor(t, quantizer, folder);
}
/** Writes the values; the report, config.json and tensors of the output. */
async function written(t, model, config = asValues, format = 'fake-quantized') {
  const target = join(scratchFolder(t), 'out');
  const report = await quantizer.quantizeModel(model, config, { target, format });
  const { header, data } = parsed(new Uint8Array(readFileSync(join(target, 'model.safetensors'))));
  const floatsOf = (name) => {
    assert.equal(header[name].dtype, 'BF16', name);
    return new Float32Array(
      Uint32Array.from(new Uint16Array(data(name).slice().buffer), (bits) => bits * 65536).buffer,
    );
  };
  return { report, header, floatsOf, config: JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')) };
}
const refused = (model, expected) =>
  assert.rejects(() => quantizer.plan(model, asValues, { format: 'fake-quantized' }), expected);

const words = (rows, columns, bits, codeOf, perWord = 32 / bits) => {
  const width = Math.ceil(columns / perWord);
  const data = new Int32Array(rows * width);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      data[row * width + Math.floor(column / perWord)] |= codeOf(row, column) << (bits * (column % perWord));
  return { dtype: 'I32', shape: [rows, width], data };
};
const compressed = (weights, more = {}) => ({
  quantization_config: {
    quant_method: 'compressed-tensors',
    format: 'pack-quantized',
    config_groups: {
      group_0: {
        targets: ['Linear'],
        weights: { num_bits: 4, type: 'int', strategy: 'group', group_size: 32, ...weights },
      },
    },
    ...more,
  },
});
const shapeOf = (rows, columns) => ({
  dtype: 'I64',
  shape: [2],
  data: new BigInt64Array([BigInt(rows), BigInt(columns)]),
});
const code = (bits) => (row, column) => (row * 7 + column * 3) % 2 ** bits;
const packed = (bits, rows = 4, columns = 64, perWord = Math.floor(32 / bits)) => ({
  'a.weight_packed': words(rows, columns, bits, code(bits), perWord),
  'a.weight_scale': {
    dtype: 'F32',
    shape: [rows, 2],
    data: Float32Array.from({ length: 2 * rows }, (_, i) => 2 ** (i % 3)),
  },
  'a.weight_shape': shapeOf(rows, columns),
});
const valuesOf = (bits, rows = 4, columns = 64) =>
  Float32Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    return (code(bits)(row, column) - 2 ** (bits - 1)) * 2 ** ((2 * row + Math.floor((2 * column) / columns)) % 3) + 0;
  });

test('compressed-tensors: words as releases before 0.18 cut them, and of one bit', async (t) => {
  for (const bits of [1, 3, 5, 6, 7]) {
    const { floatsOf } = await written(t, await opened(t, packed(bits), compressed({ num_bits: bits })));
    assert.deepEqual(
      floatsOf('a.weight').map((v) => v + 0),
      valuesOf(bits),
      `${bits} bits`,
    );
  }
  // As many words either way: the release that wrote them decides.
  for (const [version, isOld] of [
    ['0.17.1', true],
    ['0.9', true],
    ['0.18.0', false],
  ]) {
    const config = compressed({ num_bits: 3, strategy: 'channel', group_size: null }, { version });
    const tensors = {
      ...packed(3, 4, 20),
      'a.weight_scale': { dtype: 'F32', shape: [4, 1], data: new Float32Array(4).fill(1) },
    };
    const { floatsOf } = await written(t, await opened(t, tensors, config));
    const expected = valuesOf(3, 4, 20).map((_, at) => code(3)(Math.floor(at / 20), at % 20) - 4);
    assert.equal(
      Buffer.from(floatsOf('a.weight').map((v) => v + 0).buffer).equals(Buffer.from(expected.buffer)),
      isOld,
      version,
    );
  }
  await refused(await opened(t, packed(4), compressed({ num_bits: 7 })), {
    code: 'shape-mismatch',
    where: 'a.weight_packed',
    message: /7 bits, as config.json says/,
  });
  await refused(await opened(t, packed(4), compressed({ group_size: 16 })), {
    code: 'shape-mismatch',
    where: 'a.weight_scale',
  });
});

test('an order of columns of -1 throughout is none', async (t) => {
  const index = { dtype: 'I32', shape: [64], data: new Int32Array(64).fill(-1) };
  const tensors = { ...packed(4, 4, 64, 8), 'a.weight_g_idx': index };
  const { floatsOf } = await written(t, await opened(t, tensors, compressed({ actorder: 'group' })));
  assert.deepEqual(
    floatsOf('a.weight').map((v) => v + 0),
    valuesOf(4),
  );
  await refused(await opened(t, packed(4, 4, 64, 8), compressed({ actorder: 'group' })), {
    code: 'tensor-missing',
    where: 'a.weight_g_idx',
  });
});

const transforms = (location) => ({
  transform_config: {
    config_groups: {
      R4: {
        type: 'hadamard',
        apply: [
          { targets: ['Linear'], location },
          { targets: ['Linear'], location: 'weight_input' },
        ],
      },
    },
  },
});
const gptq = { quant_method: 'gptq', bits: 4, group_size: 32, sym: true, desc_act: false };
const block = (quantization_config) => ({ quantization_config });
for (const [what, config, where, code] of [
  [
    'an online transform',
    compressed({}, transforms('input')),
    '/quantization_config/transform_config/config_groups/R4',
    'format-unsupported',
  ],
  [
    '2:4 sparsity',
    compressed({}, { sparsity_config: { format: 'sparse-24-bitmask' } }),
    '/quantization_config/sparsity_config/format',
    'format-unsupported',
  ],
  ["marlin's order", compressed({}, { format: 'marlin-24' }), '/quantization_config/format', 'format-unsupported'],
  [
    'a width that is no number',
    compressed({ num_bits: 'four' }),
    '/quantization_config/config_groups/group_0/weights/num_bits',
    'config-invalid',
  ],
  [
    'an unknown strategy',
    compressed({ strategy: 'lattice' }),
    '/quantization_config/config_groups/group_0/weights/strategy',
    'config-invalid',
  ],
  [
    'sides of blocks that are no numbers',
    block({ quant_method: 'fp8', weight_block_size: 'x' }),
    '/quantization_config/weight_block_size',
    'config-invalid',
  ],
  [
    "gptqmodel's rotation",
    block({ ...gptq, rotation: 'hadamard' }),
    '/quantization_config/rotation',
    'format-unsupported',
  ],
  [
    "AutoRound's rotation",
    block({ ...gptq, quant_method: 'auto-round', packing_format: 'auto_round', rotation_config: { backend: 'x' } }),
    '/quantization_config/rotation_config',
    'format-unsupported',
  ],
  [
    "Quark's R4",
    block({ quant_method: 'quark', global_quant_config: {}, algo_config: [{ name: 'quarot' }] }),
    '/quantization_config/algo_config/0',
    'format-unsupported',
  ],
  [
    'bit planes',
    block({ ...gptq, bits: 3, checkpoint_format: 'gptq_p' }),
    '/quantization_config',
    'format-unsupported',
  ],
])
  test(`${what} of a source is refused at its place, also in a sub-config`, async (t) => {
    await refused(await opened(t, plain, config), { code, where });
    await refused(await opened(t, plain, { llm_config: config }), { code, where: `/llm_config${where}` });
  });

test('transforms that are in the weights have no influence, and unknown keys are remarked', async (t) => {
  const model = await opened(t, packed(4, 4, 64, 8), compressed({}, { ...transforms('weight_output'), lattice: 1 }));
  const { floatsOf, report } = await written(t, model);
  assert.deepEqual(
    floatsOf('a.weight').map((v) => v + 0),
    valuesOf(4),
  );
  assert.deepEqual(
    report.diagnostics.filter(({ code }) => code === 'key-unknown').map(({ severity, where }) => [severity, where]),
    [['warning', '/quantization_config/lattice']],
  );
});

for (const stale of [
  { quant_method: 'bitnet' },
  { quant_method: 'torchao', quant_type: 'int4' },
  { quant_method: 'quanto' },
  {},
])
  test(`a block ${JSON.stringify(stale)} next to plain weights is left out`, async (t) => {
    for (const config of [
      block(stale),
      { text_config: block(stale) },
      { vision_config: { size: 1, ...block(stale) }, ...block(stale) },
    ]) {
      const { report, config: left, floatsOf } = await written(t, await opened(t, plain, config));
      assert.ok(report.diagnostics.some(({ code, severity }) => code === 'no-effect' && severity === 'note'));
      assert.ok(!JSON.stringify(left).includes('quantization_config'), JSON.stringify(left));
      assert.equal(floatsOf('a.weight').length, 64 * 64);
    }
    const bytes = { dtype: 'U8', shape: [64, 32], data: new Uint8Array(2048) };
    await refused(await opened(t, { 'a.weight': bytes, 'a.weight_scale': floats([1]) }, block(stale)), {
      code: 'format-unknown',
    });
  });

test('a block in any sub-config counts', async (t) => {
  const folder = join(files, 'quantized/bitsandbytes');
  const { header, data } = parsed(new Uint8Array(readFileSync(join(folder, 'model.safetensors'))));
  const tensors = Object.fromEntries(
    Object.entries(header)
      .filter(([name]) => name[0] !== '_')
      .map(([name, { dtype, shape }]) => [name, { dtype, shape, data: data(name) }]),
  );
  const own = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  const expected = await written(t, await modelFor(t, quantizer, folder));
  for (const config of [{ llm_config: own }, { thinker_config: { text_config: own } }]) {
    const found = await written(t, await opened(t, tensors, config));
    assert.deepEqual(found.floatsOf('nf4.nested.weight'), expected.floatsOf('nf4.nested.weight'));
    assert.ok(!JSON.stringify(found.config).includes('quantization_config'));
  }
});

test('codes of a tool that is not known stay as they are, with a warning that says what tells it', async (t) => {
  const codes = { dtype: 'I8', shape: [64, 64], data: new Int8Array(4096).fill(3) };
  for (const [parts, told] of [
    [{ 'b.weight': codes, 'b.weight_scale': floats([64, 1]) }, /weight_scale/],
    [{ 'b.W_q': { ...codes, dtype: 'U8' }, 'b.scale': floats([64, 1]), 'b.zero': floats([64, 1]) }, /scale, zero/],
    [{ 'b.weight._data': codes, 'b.weight._scale': floats([64, 1]) }, /_scale/],
  ]) {
    const { report, header } = await written(
      t,
      await opened(t, { ...plain, 'c.weight': floats([64, 64]), ...parts }, {}),
      'int8',
      'quark',
    );
    const warning = report.diagnostics.find(({ code }) => code === 'quantized-already');
    assert.equal(warning?.severity, 'warning');
    assert.match(warning.message, told);
    for (const name of Object.keys(parts)) assert.deepEqual(header[name].dtype, parts[name].dtype);
  }
});

test("ComfyUI's convrot is refused by its name", async (t) => {
  const said = new Uint8Array(
    Buffer.from(JSON.stringify({ format: 'int8_tensorwise', convrot: true, convrot_groupsize: 64 })),
  );
  const tensors = {
    'a.weight': { dtype: 'I8', shape: [64, 64], data: new Int8Array(4096) },
    'a.weight_scale': floats([64, 1]),
    'a.comfy_quant': { dtype: 'U8', shape: [said.length], data: said },
  };
  await refused(await opened(t, tensors, {}), {
    code: 'dtype-unsupported',
    where: 'a.comfy_quant',
    message: /convrot/,
  });
});

test('a model whose inputs are rotated while it runs is written only where that can be said', async (t) => {
  const model = await opened(t, plain, { input_rotation: { 'mlp.down_proj': 'hadamard' } });
  const { report } = await written(t, model);
  assert.ok(report.diagnostics.some(({ code }) => code === 'online-rotation'));
  await assert.rejects(() => quantizer.plan(model, 'int8', { format: 'compressed-tensors' }), {
    code: 'format-unsupported',
    where: '/input_rotation',
  });
});
