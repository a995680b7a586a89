// Calibration that knows too little: said for the layers, in the report and in a few remarks, and `on_worse` keeps the
// better of the algorithm and rounding to nearest.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { files, memoryStream, modelFor, quantizerFor } from '../scratch.mjs';
import { firstBlocks } from '../tiny_llama.mjs';

const { data: text } = readTensors(join(files, 'tiny-llama-reference/calib_tokens.safetensors')).get('input_ids');
const { data: other } = readTensors(join(files, 'tiny-llama-reference/eval_tokens.safetensors')).get('input_ids');
const rowsOf = (ids, count, length) => ({
  data: Int32Array.from(ids.subarray(0, count * length)),
  shape: [count, length],
});

const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
/** Lists of pre_quant_opt_config and algo_config names. */
const combinations = [
  [[], ['gptq']],
  [[], ['awq']],
  [['smoothquant'], ['awq', 'gptq']],
  [['autosmoothquant'], ['gptaq']],
  [[], ['qronos']],
  [[], ['gpfq']],
];
const configOf = ([before, after], rest = {}) => {
  const named = (names) => names.map((name) => ({ name, ...rest }));
  return {
    global_quant_config: { weight },
    exclude: ['lm_head'],
    pre_quant_opt_config: named(before),
    algo_config: named(after),
  };
};

async function run(quantizer, model, config, tokens) {
  const out = memoryStream();
  const options = { target: out.stream, format: 'fake-quantized', ...(tokens && { calibration: { tokens } }) };
  const report = await quantizer.quantizeModel(model, config, options);
  const layers = report.tensors.filter(({ calibration }) => calibration);
  const remarks = Object.fromEntries(
    report.diagnostics
      .filter(({ code }) => code.startsWith('calibration-') || code === 'rounded-to-nearest')
      .map((diagnostic) => [diagnostic.code, diagnostic]),
  );
  return { bytes: out.bytes(), report, layers, remarks };
}

async function lossOf(t, quantizer, source, bytes) {
  const quantized = await modelFor(t, quantizer, [
    new File([bytes], 'model.safetensors'),
    new File([readFileSync(join(source, 'config.json'))], 'config.json'),
  ]);
  return (await quantizer.languageModel(quantized).evaluate({ tokens: rowsOf(other, 2, 256), bytesPerToken: 1 }))
    .bitsPerToken;
}

test('with enough text nothing is reported, and every layer is better than rounded to nearest', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, firstBlocks(t, 2));
  for (const combination of [
    [[], ['gptq']],
    [[], ['awq', 'gptq']],
  ]) {
    const { layers, remarks } = await run(quantizer, model, configOf(combination), rowsOf(text, 8, 256));
    assert.deepEqual(remarks, {});
    assert.equal(layers.length, 14);
    for (const { name, calibration } of layers) {
      assert.equal(calibration.tokens, 2048, name);
      assert.ok(calibration.rank * 8 >= calibration.features, `${name}: ${calibration.rank}`);
      assert.ok(calibration.outputSqnrDb > calibration.nearestSqnrDb, name);
      assert.equal(calibration.isWorse || calibration.isNearest, false, name);
    }
    const better = await run(quantizer, model, configOf(combination, { on_worse: 'nearest' }), rowsOf(text, 8, 256));
    assert.deepEqual(better.remarks, {});
  }
});

test('with too little text the layers are named, and nearest is kept where it is better', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const source = firstBlocks(t, 2);
  const model = await modelFor(t, quantizer, source);
  const nearest = await run(quantizer, model, configOf([[], []]));
  const nearestLoss = await lossOf(t, quantizer, source, nearest.bytes);
  const repeated = { data: new Int32Array(1024).fill(101), shape: [8, 128] };
  for (const [what, tokens, code] of [
    ['4 tokens', { rows: [[256, 84, 104, 101]] }, 'calibration-short'],
    ['a repeated token', repeated, 'calibration-poor'],
  ]) {
    let worse = 0;
    for (const combination of combinations) {
      const name = `${combination.flat().join(', ')} on ${what}`;
      const kept = await run(quantizer, model, configOf(combination), tokens);
      assert.match(kept.remarks[code].message, /^\d\d layers? saw .* and \d+ more$/, name);
      assert.match(kept.remarks[code].where, /^model\.layers\.0\./, name);
      assert.equal(
        Boolean(kept.remarks['calibration-worse']),
        kept.layers.some(({ calibration }) => calibration.isWorse),
      );
      worse += kept.remarks['calibration-worse'] ? 1 : 0;
      const better = await run(quantizer, model, configOf(combination, { on_worse: 'nearest' }), tokens);
      const gains = better.layers
        .filter(({ calibration }) => calibration.outputSqnrDb !== null)
        .map(({ calibration }) => calibration.outputSqnrDb - calibration.nearestSqnrDb);
      // Layers that read the same input are scaled together, so that one may lose what the others gain.
      if (combination.flat().join() === 'gptq') assert.ok(Math.min(...gains) >= 0, name);
      if (gains.length > 0) assert.ok(gains.reduce((sum, gain) => sum + gain) / gains.length > -0.01, name);
      const loss = await lossOf(t, quantizer, source, better.bytes);
      assert.ok(loss < nearestLoss + 0.05, `${name}: ${loss}, nearest ${nearestLoss}`);
    }
    assert.ok(worse > 0, what);
  }
});

test('on_worse is keep or nearest', async (t) => {
  const quantizer = await quantizerFor(t);
  const found = (rest) =>
    quantizer.checkConfig(configOf([['smoothquant'], ['awq', 'gptq']], rest)).map(({ where }) => where);
  assert.deepEqual(found({ on_worse: 'keep' }), []);
  assert.deepEqual(found({ on_worse: 'better' }), [
    '/pre_quant_opt_config/0/on_worse',
    '/algo_config/0/on_worse',
    '/algo_config/1/on_worse',
  ]);
  assert.equal(found({ on_worse: 1 }).length, 3);
});
