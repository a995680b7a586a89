// Auto-plan: the arithmetic of the choice, what it gains on tiny-llama, and what is refused.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { allocateBits, hullOf } from '../../../dist/language_model/bit_budget.js';
import { cli, cliJson } from '../cli/process.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { tokensOf } from '../tiny_llama.mjs';

const tokenFile = (name) => join(files, `tiny-llama-reference/${name}_tokens.safetensors`);
const choice = (bytes, loss) => ({ bytes, loss });

test('the hull leaves out choices that cost more and gain less', () => {
  assert.deepEqual(hullOf([choice(1, 9), choice(2, 4), null, choice(3, 3.9), choice(4, 1)]), [0, 1, 4]);
  assert.deepEqual(hullOf([choice(3, 1), choice(1, 1), choice(2, 5)]), [1]);
});

test('budgets are kept, and no single swap would do better', () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 48271) % 2147483647;
    return seed / 2147483647;
  };
  for (let round = 0; round < 200; ++round) {
    const items = Array.from({ length: 1 + Math.floor(random() * 7) }, () => ({
      choices: Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
        choice(1 + Math.floor(random() * 50), random()),
      ),
    }));
    const sums = (chosen) => {
      const rows = chosen.map((index, item) => items[item].choices[index]);
      return { bytes: rows.reduce((a, { bytes }) => a + bytes, 0), loss: rows.reduce((a, { loss }) => a + loss, 0) };
    };
    const least = sums(allocateBits(items, { bytes: 0 }));
    const most = sums(allocateBits(items, { loss: 0 }));
    assert.equal(
      least.bytes,
      items.reduce((sum, { choices }) => sum + Math.min(...choices.map(({ bytes }) => bytes)), 0),
    );
    const limit = least.bytes + random() * (most.bytes - least.bytes);
    const found = allocateBits(items, { bytes: limit });
    const { bytes, loss } = sums(found);
    assert.ok(bytes <= limit);
    for (let item = 0; item < items.length; ++item) {
      const hull = hullOf(items[item].choices);
      const next = items[item].choices[hull[hull.indexOf(found[item]) + 1]];
      if (next) assert.ok(bytes + next.bytes - items[item].choices[found[item]].bytes > limit, 'room was left');
    }
    const reached = sums(allocateBits(items, { loss: loss + 1e-12 }));
    assert.ok(reached.loss <= loss + 1e-9);
  }
});

test('auto-plan beats one scheme for all, at no more bytes', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const [calib, validation] = [tokensOf('calib', 8), tokensOf('validation', 32)];
  const folder = scratchFolder(t);
  const quality = async (name, config) => {
    const target = join(folder, name);
    const { totals } = await quantizer.quantizeModel(model, config, { target, format: 'quark' });
    const written = await modelFor(t, quantizer, target);
    return { totals, ...(await quantizer.languageModel(written).evaluate({ tokens: validation })) };
  };
  const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 128, ch_axis: -1, symmetric: true };
  const uniform = await quality('uniform', {
    global_quant_config: { weight },
    exclude: ['lm_head'],
    indivisible_groups: 'fallback',
  });
  const phases = new Set();
  const found = await quantizer.languageModel(model).autoConfig({
    targetBytes: uniform.totals.bytesAfter,
    calibration: { tokens: calib },
    format: 'quark',
    onProgress: ({ phase }) => phases.add(phase),
  });
  assert.deepEqual([...phases], ['calibrate']);
  assert.equal(found.layers.length, 28);
  assert.ok(found.totals.bytesAfter <= uniform.totals.bytesAfter);
  const auto = await quality('auto', found.config);
  assert.deepEqual(auto.totals, found.totals);
  const gain = uniform.bitsPerByte - auto.bitsPerByte;
  assert.ok(gain >= 0.015, `${auto.bitsPerByte} against ${uniform.bitsPerByte}`);

  const bits = await quantizer
    .languageModel(model)
    .autoConfig({ targetBits: 4.5, calibration: { tokens: calib }, format: 'quark' });
  assert.ok(bits.totals.bitsPerWeight <= 4.5 && bits.totals.bitsPerWeight > 4.4, String(bits.totals.bitsPerWeight));
  // The head is outside of the blocks: it stays, whoever asks for it, and the budget holds.
  const withHead = await quantizer.languageModel(model).autoConfig({
    targetBytes: bits.totals.bytesAfter,
    exclude: [],
    calibration: { tokens: calib },
    format: 'quark',
  });
  const { tensors } = await quantizer.plan(model, withHead.config, { format: 'quark' });
  assert.equal(tensors.find(({ name }) => name === 'lm_head.weight').action, 'copy');
  assert.ok(withHead.totals.bytesAfter <= bits.totals.bytesAfter);
  const maxLoss = bits.loss * 1.2;
  const byLoss = await quantizer
    .languageModel(model)
    .autoConfig({ maxLoss, calibration: { tokens: calib }, format: 'quark' });
  assert.ok(byLoss.loss <= maxLoss && byLoss.totals.bytesAfter <= bits.totals.bytesAfter);
});

test('auto-plan names the inputs it needs', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 0 });
  const model = await modelFor(t, quantizer, join(files, 'forward/llama'));
  const calibration = { tokens: { data: [1, 2, 3, 4], shape: [1, 4] } };
  const refused = (options, where, pattern) =>
    assert.rejects(quantizer.languageModel(model).autoConfig({ calibration, format: 'quark', ...options }), (error) => {
      assert.equal(error.where, where);
      assert.match(error.message, pattern);
      return true;
    });
  await refused({}, 'options', /exactly one of targetBits, targetBytes and maxLoss, found 0/);
  await refused({ targetBits: 4, maxLoss: 1 }, 'options', /found 2/);
  await refused({ targetBits: Number.NaN }, 'targetBits', /NaN is not a positive number/);
  await refused({ targetBits: 1 }, 'targetBits', /too little: the smallest candidates need \d/);
  await refused({ maxLoss: 1e-12 }, 'maxLoss', /out of reach/);
  await refused({ targetBits: 8, candidates: [] }, 'candidates', /is empty/);
  await refused({ targetBits: 8, exclude: ['*'] }, 'candidates', /no linear layer/);
  await refused({ targetBits: 8, calibration: { tokens: { data: [1, 99], shape: [1, 2] } } }, 'tokens', /99/);
  const abort = new AbortController();
  abort.abort(new Error('enough'));
  await assert.rejects(
    quantizer.languageModel(model).autoConfig({ targetBits: 8, calibration, signal: abort.signal }),
    /enough/,
  );
  assert.equal(quantizer.liveObjects - 1, 0, 'the model alone is alive');
});

test('auto on the command line writes a config that quantize accepts', async (t) => {
  const folder = scratchFolder(t);
  const [config, out] = [join(folder, 'auto.json'), join(folder, 'out')];
  const tokens = tokenFile('calib');
  const told = await cli(['auto', tinyLlama, '--tokens', tokens, '--target-bits', '5', '-o', config]);
  assert.equal(told.code, 0, told.stderr);
  assert.match(told.stdout, /0\.mlp\.down_proj +int8 per channel/);
  const parsed = JSON.parse(readFileSync(config, 'utf8'));
  assert.deepEqual(parsed.exclude, ['lm_head']);
  const { code, document } = await cliJson(['quantize', tinyLlama, '--config', config, '-o', out]);
  assert.equal(code, 0);
  assert.ok(document.totals.bitsPerWeight <= 5);
  const again = await cliJson(['auto', tinyLlama, '--tokens', tokens, '--target-bits', '5', '-o', config]);
  assert.equal(again.document.error.code, 'target-exists');
  const both = await cli(['auto', tinyLlama, '--tokens', tokens, '--target-bits', '5', '--max-loss', '1']);
  assert.equal(both.code, 2);
});
