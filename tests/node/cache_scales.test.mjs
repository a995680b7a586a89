// Scales of a key-value cache: those of a source are kept with their scheme, or named; a cache without scales is refused.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cliJson } from './cli_process.mjs';
import { scratchFolder } from './scratch.mjs';
import { noise, parsed, safetensors } from './written_model.mjs';

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

test('scales of a cache are rows of the report and keep their bytes, whatever the source and the output are', async (t) => {
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
    assert.match(document.error.message, /not calibrated here\. Remove the key/);
    assert.equal((await run(t, { ...weights, ...cacheScales }, null, { format, config })).code, 0);
    assert.equal((await run(t, weights, null, { format: 'fake-quantized', config })).code, 0);
  }
});
