// Scales of a key-value cache: those of a source are kept with their scheme, or named; those that a config asks for are
// calibrated on tokens, or refused.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { configOf, quantized, reference } from '../calibration/activation_batches.mjs';
import { cliJson } from '../cli/process.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const layer = 'model.layers.0.self_attn';
const scheme = { num_bits: 8, type: 'float', symmetric: true, strategy: 'tensor', dynamic: false };
const cacheConfig = { '*k_proj': { output_tensors: { dtype: 'fp8_e4m3', qscheme: 'per_tensor' } } };
const scale = (value) => ({ dtype: 'F32', shape: [1], data: Float32Array.of(value) });
const cacheScales = {
  [`${layer}.k_scale`]: scale(0.25),
  [`${layer}.v_scale`]: scale(0.5),
  [`${layer}.q_scale`]: scale(0.75),
  [`${layer}.k_zero_point`]: scale(0),
};
const weights = { [`${layer}.q_proj.weight`]: { dtype: 'F32', shape: [32, 32], data: noise(1024) } };
const names = Object.keys(cacheScales);
const codes = {
  [`${layer}.q_proj.weight`]: {
    dtype: 'F8_E4M3',
    shape: [32, 32],
    data: Uint8Array.from({ length: 1024 }, (_, i) => i % 120),
  },
  [`${layer}.q_proj.weight_scale`]: scale(0.01),
};
const fp8 = { ...scheme };
const blocks = {
  'compressed-tensors': {
    quant_method: 'compressed-tensors',
    format: 'float-quantized',
    config_groups: { group_0: { targets: ['Linear'], weights: fp8 } },
    kv_cache_scheme: scheme,
  },
  fp8: { quant_method: 'fp8', activation_scheme: 'static', kv_cache_scheme: scheme },
};

/** A run of a folder: exit code, document, config.json and tensors of the output. */
async function run(t, tensors, block, flags) {
  const folder = scratchFolder(t);
  const [source, out] = ['in', 'out'].map((name) => join(folder, name));
  mkdirSync(source);
  writeFileSync(join(source, 'model.safetensors'), safetensors(tensors));
  const config = {
    model_type: 'llama',
    architectures: ['LlamaForCausalLM'],
    ...(block && { quantization_config: block }),
  };
  writeFileSync(join(source, 'config.json'), JSON.stringify(config));
  const own = join(folder, 'own.json');
  if (flags.config) writeFileSync(own, JSON.stringify(flags.config));
  const spec = flags.config ? ['--config', own] : ['--preset', flags.preset];
  const result = await cliJson(['quantize', source, '-o', out, '--format', flags.format, ...spec]);
  if (result.code !== 0) return result;
  const read = (name) => readFileSync(join(out, name));
  return {
    ...result,
    config: JSON.parse(read('config.json')),
    file: parsed(new Uint8Array(read('model.safetensors'))),
  };
}

test('cache scales are rows of the report and keep their bytes, for any source and output', async (t) => {
  for (const [source, block] of [...Object.entries(blocks), ['', null]])
    for (const [format, preset] of [
      ['compressed-tensors', 'int8'],
      ['compressed-tensors', 'fp8'],
      ['quark', 'int8'],
      ['gptq', 'int4_wo_32'],
      ['fake-quantized', 'bfloat16'],
    ]) {
      const tensors = { ...(block ? codes : weights), ...cacheScales };
      const { document, config, file } = await run(t, tensors, block, { format, preset });
      const what = `${source} to ${format}`;
      for (const name of names) {
        assert.equal(document.tensors.find((row) => row.name === name)?.action, 'copy', `${what}: ${name}`);
        assert.deepEqual(file.data(name), new Uint8Array(cacheScales[name].data.buffer), `${what}: ${name}`);
      }
      const remark = document.diagnostics.find(({ code }) => code === 'cache-scales');
      const keepsScheme = source === format;
      assert.equal(remark?.severity, keepsScheme ? 'note' : 'warning', what);
      assert.match(remark.message, /is the first of 4 scales of the key-value cache, which are kept/);
      assert.deepEqual(config.quantization_config?.kv_cache_scheme ?? null, keepsScheme ? scheme : null, what);
    }
});

test('a cache that a config asks for is refused without scales, and kept with them', async (t) => {
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  const quark = { global_quant_config: { weight }, kv_cache_quant_config: cacheConfig };
  for (const [config, format, key] of [
    [quark, 'quark', 'kv_cache_quant_config'],
    [quark, 'compressed-tensors', 'kv_cache_quant_config'],
    [blocks['compressed-tensors'], 'compressed-tensors', 'kv_cache_scheme'],
    [blocks.fp8, 'quark', 'kv_cache_scheme'],
  ]) {
    const { code, document } = await run(t, weights, null, { format, config });
    assert.equal(code, 1);
    assert.equal(document.error.code, 'format-unsupported');
    assert.match(document.error.where, new RegExp(`/${key}$`));
    assert.match(document.error.message, /asks for a quantized key-value cache.*Remove the key/);
    assert.equal((await run(t, { ...weights, ...cacheScales }, null, { format, config })).code, 0);
    assert.equal((await run(t, weights, null, { format: 'fake-quantized', config })).code, 0);
  }
});

// The largest magnitudes that transformers 5.23 (PyTorch, float32) finds in the first four rows of calib_tokens:
// of keys after RoPE, of values, and of the outputs of k_proj.
const largest = [
  { key: 3.038419246673584, value: 0.9952371120452881, projectedKey: 2.5822854042053223 },
  { key: 20.42526626586914, value: 7.795219421386719, projectedKey: 20.471717834472656 },
  { key: 16.468219757080078, value: 10.252248764038086, projectedKey: 16.76870346069336 },
  { key: 23.612979888916016, value: 11.748745918273926, projectedKey: 24.01110076904297 },
];

test('a cache is calibrated on tokens: keys after RoPE in compressed-tensors, outputs of k_proj in quark', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const { data } = readTensors(join(reference, 'calib_tokens.safetensors')).get('input_ids');
  const tokens = { data: Int32Array.from(data.subarray(0, 1024)), shape: [4, 256] };
  const output = { output_tensors: { dtype: 'fp8_e4m3', qscheme: 'per_tensor' } };
  const quark = { ...configOf({}), kv_cache_quant_config: { '*k_proj': output, '*v_proj': output } };
  for (const [config, format, key, keys, values] of [
    [blocks['compressed-tensors'], 'compressed-tensors', 'key', 'k_scale', 'v_scale'],
    [quark, 'compressed-tensors', 'key', 'k_scale', 'v_scale'],
    [quark, 'quark', 'projectedKey', 'k_proj.output_scale', 'v_proj.output_scale'],
  ]) {
    const { tensor, report } = await quantized(quantizer, model, config, { tokens }, format);
    for (const [n, row] of largest.entries())
      for (const [name, expected] of [
        [keys, row[key]],
        [values, row.value],
      ]) {
        const [scale] = tensor(`model.layers.${n}.self_attn.${name}`).data;
        const off = Math.abs((scale * 448) / expected - 1);
        assert.ok(off < 1e-5, `${format}, ${name} of layer ${n}: off by ${off}`);
      }
    assert.ok(report.diagnostics.some(({ code, severity }) => code === 'cache-scales' && severity === 'note'));
    assert.ok(!report.diagnostics.some(({ code }) => code === 'fused-layers'));
    const { quantizationConfig: block } = await quantizer.plan(model, config, { format, calibrated: true });
    if (format === 'quark') assert.deepEqual(block.export.kv_cache_group, ['*k_proj', '*v_proj']);
    else assert.equal(block.kv_cache_scheme.strategy, 'tensor');
  }
});

test('kv_cache_group gives keys and values of an attention the larger scale, as Quark does', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = { data: Int32Array.from({ length: 64 }, (_, i) => i), shape: [1, 64] };
  const output = { output_tensors: { dtype: 'fp8_e4m3', qscheme: 'per_tensor' } };
  const cache = { ...configOf({}), kv_cache_quant_config: { '*k_proj': output, '*v_proj': output } };
  const scalesOf = async (more) => {
    const { tensor } = await quantized(quantizer, model, { ...cache, ...more }, { tokens }, 'quark');
    const scale = (layer, part) => tensor(`model.layers.${layer}.self_attn.${part}.output_scale`).data[0];
    return [0, 1, 2, 3].map((layer) => [scale(layer, 'k_proj'), scale(layer, 'v_proj')]);
  };
  const own = await scalesOf({});
  assert.ok(own.every(([key, value]) => key !== value));
  const larger = own.map((pair) => [Math.max(...pair), Math.max(...pair)]);
  const group = { kv_cache_group: ['*k_proj', '*v_proj'] };
  assert.deepEqual(await scalesOf(group), larger);
  assert.deepEqual(await scalesOf({ quant_method: 'quark', export: group }), larger);
  assert.deepEqual(await scalesOf({ kv_cache_group: ['*k_proj'] }), own, 'one layer of a module shares with none');
});

test('outputs with the same spec as the cache are not mistaken for it', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = { data: Int32Array.from({ length: 64 }, (_, i) => i), shape: [1, 64] };
  const output = { output_tensors: { dtype: 'fp8_e4m3', qscheme: 'per_tensor' } };
  const config = { ...configOf(output), kv_cache_quant_config: { '*k_proj': output, '*v_proj': output } };
  for (const format of ['compressed-tensors', 'quark'])
    await assert.rejects(quantized(quantizer, model, config, { tokens }, format), {
      message: /give activations for the outputs of model\.layers\.0\.(mlp|self_attn\.[qo]_proj)/,
    });
});

test('caches that files cannot describe are refused, each with its reason', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = { data: Int32Array.from({ length: 64 }, (_, i) => i), shape: [1, 64] };
  const output = { output_tensors: { dtype: 'fp8_e4m3', qscheme: 'per_tensor' } };
  const ct = blocks['compressed-tensors'];
  const withScheme = (change) => ({ ...ct, kv_cache_scheme: { ...scheme, ...change } });
  const cache = { '*k_proj': output, '*v_proj': output };
  const excluded = { ...configOf({}), exclude: ['*k_proj', 'lm_head'], kv_cache_quant_config: cache };
  for (const [config, format, reason] of [
    [ct, 'quark', /name them in a kv_cache_quant_config/],
    [withScheme({ dynamic: true }), 'compressed-tensors', /one static scale/],
    [withScheme({ type: 'int' }), 'compressed-tensors', /one static scale/],
    [{ ...configOf({}), kv_cache_quant_config: cache }, 'gptq', /gptq has no place for its scales/],
    [{ ...configOf({}), kv_cache_quant_config: cache, kv_cache_post_rope: true }, 'quark', /before RoPE/],
    [excluded, 'quark', /k_proj keeps its weight/],
    [{ ...configOf({}), kv_cache_quant_config: { '*key': output } }, 'quark', /no layers named k_proj or v_proj/],
  ])
    await assert.rejects(quantized(quantizer, model, config, { tokens }, format), { message: reason }, `${reason}`);
});
