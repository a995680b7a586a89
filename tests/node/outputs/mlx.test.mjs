// Folders of MLX: parts as mx.quantize makes them (tests/files/mlx_written/make.py), config.json with the keys that mlx-lm reads, and what is refused.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';
import { noise, parsed, safetensors } from '../written_model.mjs';

const made = join(files, 'mlx_written');
const layer = 'model.layers.0.mlp.up_proj';
const llama = { model_type: 'llama', architectures: ['LlamaForCausalLM'], hidden_size: 128, num_attention_heads: 4 };

const noiseWeights = () =>
  safetensors({ [`${layer}.weight`]: { dtype: 'F32', shape: [32, 128], data: noise(32 * 128, 5) } });

function folderOf(t, weights, config) {
  const folder = scratchFolder(t);
  writeFileSync(join(folder, 'model.safetensors'), weights);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  return folder;
}

/** What a folder with these tensors becomes. */
async function written(t, weights, preset, settings) {
  const target = join(scratchFolder(t), 'out');
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, folderOf(t, weights, settings));
  const report = await quantizer.quantizeModel(model, preset, { target, format: 'mlx' });
  const config = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'));
  return { report, target, quantizer, model, config, ...parsed(readFileSync(join(target, 'model.safetensors'))) };
}

for (const dtype of ['F32', 'BF16', 'F16'])
  for (const bits of [2, 3, 4, 5, 6, 8])
    test(`${bits} bits of ${dtype}: codes, scales and biases of mx.quantize, byte for byte`, async (t) => {
      const weights = readFileSync(join(made, `weights.${dtype}.safetensors`));
      const { header, data, config } = await written(t, weights, `mlx_${bits}bit`, llama);
      const expected = parsed(readFileSync(join(made, `expected.${dtype}.safetensors`)));
      for (const part of ['weight', 'scales', 'biases']) {
        const [found, wanted] = [header[`${layer}.${part}`], expected.header[`${bits}.${part}`]];
        assert.deepEqual([found.dtype, found.shape], [wanted.dtype, wanted.shape]);
        assert.deepEqual(data(`${layer}.${part}`), expected.data(`${bits}.${part}`), part);
      }
      assert.deepEqual(config.quantization, { group_size: 64, bits, mode: 'affine' });
      assert.deepEqual(config.quantization_config, config.quantization);
    });

for (const [preset, parameters] of [
  ['mlx_4bit', { group_size: 64, bits: 4, mode: 'affine' }],
  ['uint4_wo_32', { group_size: 32, bits: 4, mode: 'affine' }],
  ['mxfp4', { group_size: 32, bits: 4, mode: 'mxfp4' }],
  ['mxfp8', { group_size: 32, bits: 8, mode: 'mxfp8' }],
  ['nvfp4', { group_size: 16, bits: 4, mode: 'nvfp4' }],
])
  test(`${preset}: the reported error is that of the file`, async (t) => {
    const { report, target, quantizer, model, config } = await written(t, noiseWeights(), preset, llama);
    const compared = await quantizer.compare(model, await modelFor(t, quantizer, target));
    const [of, said] = [compared, report].map(({ tensors }) => tensors.find(({ error }) => error).error);
    assert.ok(said.sqnrDb > 12, `${said.sqnrDb} dB`);
    assert.ok(Math.abs(of.mse / said.mse - 1) < 1e-6, `${of.mse}, ${said.mse} in the report`);
    assert.deepEqual(config.quantization, parameters);
  });

test('embeddings and the head are quantized, other layers by their own parameters, and the preset chooses the format', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const target = join(scratchFolder(t), 'out');
  const config = quantizer.presets().find(({ name }) => name === 'mlx_4bit').config;
  const { weight } = config.global_quant_config;
  const mixed = {
    ...config,
    layer_quant_config: { ...config.layer_quant_config, '*.down_proj': { weight: { ...weight, dtype: 'uint6' } } },
  };
  const report = await quantizer.quantizeModel(model, mixed, { target });
  assert.equal(report.format, 'mlx');
  const { quantization } = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'));
  const { header } = parsed(readFileSync(join(target, 'model.safetensors')));
  for (const name of ['model.embed_tokens', 'lm_head']) assert.equal(header[`${name}.weight`].dtype, 'U32');
  const own = Object.entries(quantization).filter(([name]) => name.includes('.'));
  assert.ok(own.length > 0 && own.every(([name]) => name.endsWith('.down_proj')));
  assert.deepEqual(own[0][1], { group_size: 64, bits: 6, mode: 'affine' });
});

test('codes that gptq chose lose less than rounded ones, in a file of the same size', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const { config } = quantizer.presets().find(({ name }) => name === 'mlx_3bit');
  const outcomes = [];
  for (const algo_config of [[], [{ name: 'gptq' }]]) {
    const target = join(scratchFolder(t), 'out');
    const calibration = algo_config.length > 0 ? { calibration: { tokens: tokensOf('calib', 16) } } : {};
    await quantizer.quantizeModel(model, { ...config, algo_config }, { target, ...calibration });
    const written = await modelFor(t, quantizer, target);
    const { bitsPerByte } = await quantizer.languageModel(written).evaluate({ tokens: tokensOf('eval', 8) });
    outcomes.push({ bitsPerByte, bytes: readFileSync(join(target, 'model.safetensors')).length });
  }
  const [rounded, chosen] = outcomes;
  assert.equal(chosen.bytes, rounded.bytes);
  assert.ok(chosen.bitsPerByte < 0.97 * rounded.bitsPerByte, JSON.stringify(outcomes));
});

test('keys of rotary embeddings that transformers 5 nests are written at the top, where mlx-lm reads them', async (t) => {
  const rope_parameters = { rope_type: 'llama3', rope_theta: 500000, factor: 8, low_freq_factor: 1 };
  const { config } = await written(t, noiseWeights(), 'mlx_4bit', { ...llama, rope_parameters });
  assert.equal(config.rope_theta, 500000);
  assert.deepEqual(config.rope_scaling, rope_parameters);
  assert.equal(config.head_dim, 32);
  const given = { ...llama, rope_theta: 7, rope_scaling: { type: 'linear', factor: 2 }, head_dim: 64 };
  const kept = (await written(t, noiseWeights(), 'mlx_4bit', given)).config;
  assert.deepEqual(
    { ...kept, quantization: undefined, quantization_config: undefined },
    {
      ...given,
      quantization: undefined,
      quantization_config: undefined,
    },
  );
});

// qwen3_moe with four experts in two layers; `left`: an expert that keeps its values.
const mixture = { ...llama, model_type: 'qwen3_moe', architectures: ['Qwen3MoeForCausalLM'], num_local_experts: 4 };
const expertWeights = (count, first = 0) => {
  const tensors = {};
  for (const block of [0, 1])
    for (let expert = first; expert < first + count; expert++)
      for (const [part, shape] of Object.entries({ up_proj: [32, 128], gate_proj: [32, 128], down_proj: [128, 64] }))
        tensors[`model.layers.${block}.mlp.experts.${expert}.${part}.weight`] = {
          dtype: 'F32',
          shape,
          data: noise(shape[0] * shape[1], 7 * block + expert + shape[0]),
        };
  return safetensors(tensors);
};

test('experts of a layer become one tensor of the bytes that each would have, and are read again one by one', async (t) => {
  const { header, data, config, target, quantizer, model } = await written(t, expertWeights(4), 'mlx_4bit', mixture);
  assert.equal(config.num_experts, 4);
  assert.equal(Object.keys(header).filter((name) => name.startsWith('model.')).length, 2 * 3 * 3);
  const single = await written(t, expertWeights(1), 'mlx_4bit', { ...mixture, model_type: 'llama' });
  for (const part of ['weight', 'scales', 'biases']) {
    const name = `model.layers.1.mlp.switch_mlp.down_proj.${part}`;
    const own = `model.layers.1.mlp.experts.0.down_proj.${part}`;
    assert.deepEqual(header[name].shape, [4, ...single.header[own].shape]);
    assert.deepEqual(data(name).subarray(0, single.data(own).length), single.data(own));
  }
  const compared = await quantizer.compare(model, await modelFor(t, quantizer, target));
  const rows = compared.tensors.filter(({ error }) => error);
  assert.equal(rows.length, 24);
  for (const { error } of rows) assert.ok(error.sqnrDb > 18, `${error.sqnrDb} dB`);
});

test('experts of a layer in several shards: the same bytes for any number of workers, and in parts', async (t) => {
  const source = scratchFolder(t);
  const names = [1, 2, 3].map((number) => `model-0000${number}-of-00003.safetensors`);
  const shards = [expertWeights(1), expertWeights(2, 1), expertWeights(1, 3)];
  const places = shards.flatMap((bytes, i) => Object.keys(parsed(bytes).header).map((name) => [name, names[i]]));
  for (const [i, bytes] of shards.entries()) writeFileSync(join(source, names[i]), bytes);
  writeFileSync(join(source, 'config.json'), JSON.stringify(mixture));
  const index = { metadata: { total_size: 0 }, weight_map: Object.fromEntries(places) };
  writeFileSync(join(source, 'model.safetensors.index.json'), JSON.stringify(index));
  const outputs = [];
  for (const [threads, parts] of [
    [0, 1],
    [1, 1],
    [3, 1],
    [1, 2],
  ]) {
    const target = join(scratchFolder(t), 'out');
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, source);
    for (let part = 1; part <= parts; ++part)
      await quantizer.quantizeModel(model, 'mlx_4bit', {
        target,
        format: 'mlx',
        ...(parts > 1 && { shards: { part, of: parts } }),
      });
    if (parts > 1) await quantizer.mergeShards(target);
    const files = readdirSync(target)
      .filter((name) => name.endsWith('.safetensors'))
      .sort();
    outputs.push(files.map((name) => [name, readFileSync(join(target, name))]));
  }
  const [first] = outputs;
  const { header } = parsed(first[0][1]);
  assert.equal(Object.keys(header).filter((name) => name.includes('.switch_mlp.')).length, 2 * 3 * 3);
  for (const other of outputs) assert.deepEqual(other, first);
});

test('experts of one layer with several configs are refused', async (t) => {
  const quantizer = await quantizerFor(t);
  const { config } = quantizer.presets().find(({ name }) => name === 'mlx_4bit');
  const apart = { ...config, exclude: ['*.experts.2.up_proj'] };
  await assert.rejects(written(t, expertWeights(4), apart, mixture), {
    code: 'format-unsupported',
    where: 'model.layers.0.mlp.experts.2.up_proj.weight',
  });
});

test('families that mlx-lm has under other names, computes otherwise or has not are refused', async (t) => {
  for (const [model_type, reason] of [
    ['qwen3_next', /renames or rearranges/],
    ['glm', /rotates whole heads/],
    ['nobodys', /not known to be one of mlx-lm's/],
  ])
    await assert.rejects(written(t, noiseWeights(), 'mlx_4bit', { ...llama, model_type }), reason);
});

test('codes that count from an end fit no other format of codes', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, folderOf(t, noiseWeights(), llama));
  for (const format of ['compressed-tensors', 'quark', 'awq', 'gptq'])
    await assert.rejects(
      async () => {
        const { diagnostics } = await quantizer.plan(model, 'mlx_4bit', { format });
        const wrong = diagnostics.find(({ severity }) => severity === 'error');
        if (wrong) throw new Error(wrong.message);
      },
      /count from the larger end/,
      format,
    );
});
