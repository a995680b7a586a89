// Calibration of a mixture of experts: each expert by the tokens that the router sends it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { mixtureTokens, sizes, unseen, writeTinyMixture } from '../tiny_mixture.mjs';

const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
const gptq = { name: 'gptq' };
const configs = {
  nearest: [],
  gptq: [gptq],
  awq: [{ name: 'awq' }],
  best: [{ name: 'awq' }, { ...gptq, choose: 'best', refine: 1 }],
  'gptq at once': [{ ...gptq, true_sequential: false }],
};
const calibration = { tokens: mixtureTokens(64) };
const isUnseen = (name) => name.includes(`.experts.${unseen}.`);

async function quantized(t, threads, algo_config, source, target, format = 'fake-quantized') {
  const quantizer = await quantizerFor(t, { threads });
  const model = await modelFor(t, quantizer, source);
  const config = { global_quant_config: { weight }, exclude: ['lm_head', '*.gate'], algo_config };
  const given = algo_config.length > 0 ? { calibration } : {};
  const report = await quantizer.quantizeModel(model, config, { target, format, ...given });
  return { quantizer, model, report };
}

test('GPTQ, AWQ and the best of both change predictions less than rounding to nearest', async (t) => {
  const folder = scratchFolder(t);
  const source = writeTinyMixture(join(folder, 'source'));
  const losses = {};
  for (const [name, algorithms] of Object.entries(configs)) {
    const target = join(folder, name);
    const { quantizer, model } = await quantized(t, 0, algorithms, source, target);
    const written = quantizer.languageModel(await modelFor(t, quantizer, target));
    const { divergence } = await written.evaluate({ tokens: mixtureTokens(16, 9), against: model });
    losses[name] = divergence.meanKld;
  }
  t.diagnostic(JSON.stringify(losses));
  for (const name of Object.keys(configs).slice(1)) assert.ok(losses[name] < 0.95 * losses.nearest, name);
  assert.ok(losses.best < losses.gptq);
});

test('the number of workers changes no byte and no figure', async (t) => {
  const folder = scratchFolder(t);
  const source = writeTinyMixture(join(folder, 'source'));
  for (const name of ['best', 'gptq at once']) {
    const outcomes = [];
    for (const threads of [0, 1, 3]) {
      const target = join(folder, `${name} ${threads}`);
      const { report } = await quantized(t, threads, configs[name], source, target);
      outcomes.push([readFileSync(join(target, 'model.safetensors')), report.tensors.map((row) => row.calibration)]);
    }
    assert.deepEqual(outcomes[1], outcomes[0]);
    assert.deepEqual(outcomes[2], outcomes[0]);
  }
});

test('every expert is judged by its own tokens, and one without any is rounded to nearest, which is said', async (t) => {
  const folder = scratchFolder(t);
  const source = writeTinyMixture(join(folder, 'source'));
  await quantized(t, 0, [], source, join(folder, 'nearest'));
  const { report } = await quantized(t, 0, [gptq], source, join(folder, 'gptq'));
  const [nearest, written] = ['nearest', 'gptq'].map((name) => readTensors(join(folder, name, 'model.safetensors')));
  for (let layer = 0; layer < sizes.layers; ++layer) {
    const gates = report.tensors.filter(
      ({ name }) => name.startsWith(`model.layers.${layer}.`) && name.includes('.w1.'),
    );
    assert.equal(gates.length, sizes.experts);
    const tokens = gates.map(({ calibration: { tokens } }) => tokens);
    assert.equal(
      tokens.reduce((sum, count) => sum + count, 0),
      sizes.chosen * calibration.tokens.data.length,
    );
    assert.equal(tokens[unseen], 0);
    assert.ok(tokens.slice(0, unseen).every((count) => count > 0));
  }
  for (const [name, { data }] of written) {
    if (!name.includes('.experts.')) continue;
    if (isUnseen(name)) assert.deepEqual(data, nearest.get(name).data, name);
    else assert.notDeepEqual(data, nearest.get(name).data, name);
  }
  const remark = report.diagnostics.find(({ code }) => code === 'calibration-unseen');
  assert.match(remark.message, /^6 layers are experts that the router sent no token/);
  assert.ok(isUnseen(remark.where));
});

test('experts of a GGUF file are stored one by one in the tensor of all', async (t) => {
  const folder = scratchFolder(t);
  const source = writeTinyMixture(join(folder, 'source'));
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, source);
  const config = { dialect: 'gguf', recipe: 'q4_0', algo_config: [gptq] };
  const target = join(folder, 'gguf');
  const report = await quantizer.quantizeModel(model, config, { target, format: 'gguf', calibration });
  const stacks = report.tensors.filter(({ name, calibration: found }) => name.includes('.experts.') && found);
  assert.equal(stacks.length, 3 * sizes.layers);
  for (const { calibration: found } of stacks) assert.ok(found.outputSqnrDb > found.nearestSqnrDb);
  assert.ok(report.diagnostics.some(({ code }) => code === 'calibration-unseen'));
});

test('what compares with the unquantized model, or rotates the stream of a mixture, is refused by name', async (t) => {
  const folder = scratchFolder(t);
  const source = writeTinyMixture(join(folder, 'source'));
  const refused = (algorithm) =>
    assert.rejects(quantized(t, 0, [algorithm], source, join(folder, 'none')), { code: 'not-implemented' });
  await refused({ name: 'gptaq' });
  await refused({ name: 'rotation', scaling_layers: { first_layer: [], middle_layers: [], last_layer: [] } });
});

test('an importance matrix has the sums and counts of each expert', async (t) => {
  const source = writeTinyMixture(join(scratchFolder(t), 'source'));
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, source);
  const matrix = await quantizer.languageModel(model).importance({ calibration });
  const { tensors } = await modelFor(t, quantizer, matrix);
  const floats = (wanted) => {
    const { begin, end } = tensors.find(({ name }) => name === wanted);
    return new Float32Array(matrix.slice(begin, end).buffer);
  };
  const sent = sizes.chosen * calibration.tokens.data.length;
  for (let layer = 0; layer < sizes.layers; ++layer) {
    const counts = floats(`blk.${layer}.ffn_gate_exps.weight.counts`);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      sent,
    );
    assert.equal(counts[unseen], 0);
    for (const part of ['up', 'down']) assert.deepEqual(floats(`blk.${layer}.ffn_${part}_exps.weight.counts`), counts);
    // What goes in is x / rms(x) * norm, so that the squares of each token without the norm add up to its number of features.
    const norm = readTensors(join(source, 'model.safetensors')).get(
      `model.layers.${layer}.post_attention_layernorm.weight`,
    ).data;
    const sums = floats(`blk.${layer}.ffn_gate_exps.weight.in_sum2`);
    assert.equal(sums.length, sizes.experts * sizes.hidden);
    for (const [expert, count] of counts.entries()) {
      const own = sums.subarray(expert * sizes.hidden, (expert + 1) * sizes.hidden);
      const total = own.reduce((sum, square, i) => sum + square / norm[i] ** 2, 0);
      assert.ok(Math.abs(total - count * sizes.hidden) <= 1e-3 * count * sizes.hidden, `${expert}: ${total}`);
    }
  }
});
