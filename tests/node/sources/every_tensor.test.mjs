// Every tensor of a quantized checkpoint counts: of a small one of each format that is read, each tensor in turn is taken
// away, renamed, and given another dtype. That is an error that names the layer, or all weights keep their values.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { files, scratchFolder } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const quantizer = await createQuantizer({ threads: 0 });
after(() => quantizer[Symbol.asyncDispose]());

const asValues = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: [] };

/** {tensors, siblings} of a folder. */
function read(folder) {
  const { header, data } = parsed(new Uint8Array(readFileSync(join(folder, 'model.safetensors'))));
  const names = Object.keys(header).filter((name) => name !== '__metadata__');
  const tensors = Object.fromEntries(
    names.map((name) => [name, { dtype: header[name].dtype, shape: header[name].shape, data: data(name) }]),
  );
  const siblings = readdirSync(folder).filter((name) => /^(config|hf_quant_config)\.json$/.test(name));
  return { tensors, siblings: Object.fromEntries(siblings.map((name) => [name, readFileSync(join(folder, name))])) };
}

/** What a run makes of it, {name: bytes as text}; throws what the run throws. */
async function valuesOf(folder, { tensors, siblings }) {
  if (!existsSync(folder)) mkdirSync(folder);
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  for (const [name, content] of Object.entries(siblings)) writeFileSync(join(folder, name), content);
  const model = await quantizer.open(folder);
  try {
    const out = join(folder, 'out');
    await quantizer.quantizeModel(model, asValues, { target: out, format: 'fake-quantized', overwrite: true });
    const { header, data } = parsed(new Uint8Array(readFileSync(join(out, 'model.safetensors'))));
    const names = Object.keys(header).filter((name) => name !== '__metadata__');
    return new Map(names.map((name) => [name, `${header[name].dtype} ${Buffer.from(data(name)).toString('base64')}`]));
  } finally {
    model.close();
  }
}

const model = (tensors, quantization_config, more = {}) => ({
  tensors,
  siblings: {
    'config.json': JSON.stringify({ model_type: 'x', ...more, ...(quantization_config && { quantization_config }) }),
  },
});
const bytes = (count, seed = 1) => Uint8Array.from(noise(count, seed), (v) => (Math.abs(v) * 120) & 0x77);
const f32 = (shape, seed = 5) => ({
  dtype: 'F32',
  shape,
  data: noise(
    shape.reduce((a, b) => a * b, 1),
    seed,
  ).map((v) => Math.abs(v) + 0.1),
});
const powers = (shape) => ({
  dtype: 'F8_E8M0',
  shape,
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => 120 + (i % 9)),
});
const f8 = (shape, seed) => ({
  dtype: 'F8_E4M3',
  shape,
  data: bytes(
    shape.reduce((a, b) => a * b, 1),
    seed,
  ),
});
const json = (value) => {
  const data = new Uint8Array(Buffer.from(JSON.stringify(value)));
  return { dtype: 'U8', shape: [data.length], data };
};
/** The same parts in two layers, so that one without a part is next to one with it. */
const twice = (parts) =>
  Object.fromEntries(
    ['a.up', 'b.up'].flatMap((layer) => Object.entries(parts).map(([part, tensor]) => [`${layer}.${part}`, tensor])),
  );
const fp8 = { quant_method: 'fp8', fmt: 'e4m3', weight_block_size: [128, 128], activation_scheme: 'dynamic' };

const made = {
  'fp8 in blocks': model(twice({ weight: f8([160, 256]), weight_scale_inv: f32([2, 2]) }), fp8),
  'fp8 and fp4 of DeepSeek V4': model(
    {
      ...twice({ weight: f8([160, 256]), scale: powers([2, 2]) }),
      ...Object.fromEntries(
        [0, 1].flatMap((e) => [
          [`experts.${e}.w1.weight`, { dtype: 'I8', shape: [8, 32], data: bytes(256, 3 + e) }],
          [`experts.${e}.w1.scale`, powers([8, 2])],
        ]),
      ),
    },
    { ...fp8, scale_fmt: 'ue8m0' },
    { expert_dtype: 'fp4' },
  ),
  'fp8 experts in one tensor': model(
    {
      'mlp.experts.gate_up_proj': f8([2, 256, 128]),
      'mlp.experts.gate_up_proj_scale_inv': f32([2, 2, 1]),
      'mlp.experts.down_proj': f8([2, 128, 128]),
      'mlp.experts.down_proj_scale_inv': f32([2, 1, 1]),
    },
    fp8,
  ),
  "ComfyUI's fp8": model({
    scaled_fp8: { dtype: 'F8_E4M3', shape: [2], data: new Uint8Array(2) },
    ...twice({ weight: f8([16, 32]), scale_weight: f32([1]), scale_input: f32([1]) }),
  }),
  "ComfyUI's int8": model(
    twice({
      weight: { dtype: 'I8', shape: [16, 32], data: bytes(512) },
      weight_scale: f32([16, 1]),
      comfy_quant: json({ format: 'int8_tensorwise' }),
    }),
  ),
  "Mistral's own names": model(twice({ weight: f8([16, 32]), qscale_weight: f32([]), qscale_act: f32([]) }), {
    quant_method: 'fp8',
  }),
};

/** Of our own writers. */
const grouped = (dtype, size = 32) => ({
  dtype,
  qscheme: 'per_group',
  group_size: size,
  ch_axis: -1,
  symmetric: !dtype.startsWith('u'),
});
const channel = (dtype) => ({ dtype, qscheme: 'per_channel', ch_axis: 0, symmetric: !dtype.startsWith('u') });
const written = [
  ['compressed-tensors', grouped('int4')],
  ['compressed-tensors', grouped('uint4')],
  ['compressed-tensors', channel('int8')],
  ['compressed-tensors', channel('uint8')],
  ['compressed-tensors', channel('fp8_e4m3')],
  ['compressed-tensors', 'nvfp4'],
  ['compressed-tensors', 'mxfp4_weight_only'],
  ['quark', grouped('int4')],
  ['quark', grouped('uint4')],
  ['quark', channel('int8')],
  ['quark', channel('fp8_e4m3')],
  ['quark', 'mxfp4_weight_only'],
  ['gptq', grouped('int4')],
  ['gptq', grouped('uint4')],
  ['awq', grouped('uint4')],
];

/** A dtype of the same size that no part of this kind has. */
const others = {
  F32: 'I32',
  I32: 'F32',
  U32: 'F32',
  F16: 'I16',
  BF16: 'I16',
  I64: 'F64',
  I8: 'U8',
  U8: 'I8',
  F8_E8M0: 'I8',
  F8_E4M3: 'I8',
  F4: undefined,
};

/** Changes after which a file says something else, which is right, too: layers without factors, and int8 for fp8. */
const alsoRight = {
  modelopt: (what, name) =>
    (what === 'without' && name.endsWith('.pre_quant_scale')) || (what === 'as I8' && /^fp8\w*\.weight$/.test(name)),
};

/** [what, tensors] of each change of one tensor. */
function* changes(tensors, name) {
  const rest = Object.fromEntries(Object.entries(tensors).filter(([each]) => each !== name));
  const tensor = tensors[name];
  yield ['without', rest];
  yield ['renamed', { ...rest, [`${name}_old`]: tensor }];
  if (others[tensor.dtype])
    yield [`as ${others[tensor.dtype]}`, { ...rest, [name]: { ...tensor, dtype: others[tensor.dtype] } }];
}

async function checkEach(folder, source, isRight = () => false) {
  const expected = await valuesOf(folder, source);
  const wrong = [];
  for (const name of Object.keys(source.tensors)) {
    const { dtype, data } = source.tensors[name];
    const isValue =
      expected.get(name) ===
      `${dtype} ${Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64')}`;
    if (isValue) continue;
    for (const [what, tensors] of changes(source.tensors, name)) {
      if (isRight(what, name)) continue;
      const found = await valuesOf(folder, { ...source, tensors }).catch((error) => error);
      if (found instanceof Error) {
        const layer = name.replace(/\.weight\..*|\.[^.]*$/, '');
        if (!`${found.where} ${found.message}`.includes(layer))
          wrong.push(`${what} ${name}: ${found.code} at ${found.where}: ${found.message}`);
        continue;
      }
      const differing = [...expected].filter(([each, value]) => found.get(each) !== value).map(([each]) => each);
      if (differing.length > 0) wrong.push(`${what} ${name}: exit 0, other ${differing.slice(0, 3)}`);
    }
  }
  assert.deepEqual(wrong, []);
}

for (const tool of ['gpt_oss', 'modelopt', 'mlx', 'bitsandbytes', 'compressed_tensors'])
  test(`${tool}: each tensor taken away, renamed or of another dtype`, async (t) => {
    await checkEach(join(scratchFolder(t), 'model'), read(join(files, 'quantized', tool)), alsoRight[tool]);
  });

for (const [name, source] of Object.entries(made))
  test(`${name}: each tensor taken away, renamed or of another dtype`, async (t) => {
    await checkEach(join(scratchFolder(t), 'model'), source);
  });

for (const [format, spec] of written)
  test(`${format}, ${spec.dtype ?? spec} ${spec.qscheme ?? ''}: each tensor taken away, renamed or of another dtype`, async (t) => {
    const folder = scratchFolder(t);
    const [floats, codes] = [join(folder, 'floats'), join(folder, 'codes')];
    mkdirSync(floats);
    const weights = twice({ weight: { dtype: 'F32', shape: [32, 64], data: noise(2048) } });
    writeFileSync(join(floats, 'model.safetensors'), safetensors(weights));
    writeFileSync(join(floats, 'config.json'), JSON.stringify({ model_type: 'x' }));
    const config = typeof spec === 'string' ? spec : { global_quant_config: { weight: spec }, exclude: [] };
    const opened = await quantizer.open(floats);
    await quantizer.quantizeModel(opened, config, { target: codes, format });
    opened.close();
    await checkEach(join(folder, 'model'), read(codes));
  });
