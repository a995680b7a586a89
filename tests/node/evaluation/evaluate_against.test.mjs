// evaluate({ against }): divergence of a model from a reference, as llama-perplexity --kl-divergence defines it.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tokensOfText } from '../../../dist/model/text_tokens.js';
import { readTensors, writeFloats } from '../../interop/safetensors_file.mjs';
import { cli, cliJson } from '../cli/process.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const evalTokens = join(files, 'tiny-llama-reference/eval_tokens.safetensors');

function tokensOf(sequences, length = 256) {
  const { data } = readTensors(evalTokens).get('input_ids');
  const rows = Array.from({ length: sequences }, (_, row) => [...data.subarray(row * 256, row * 256 + length)]);
  return { data: rows.flat(), shape: [sequences, length] };
}

const near = (actual, expected, tolerance, message) =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${message}: ${actual}, expected ${expected}`);

const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);
const meanOf = (values) => sumOf(values) / values.length;
const errorOf = (values) =>
  Math.sqrt((meanOf(values.map((value) => value ** 2)) - meanOf(values) ** 2) / (values.length - 1));

function logSoftmax(row) {
  const largest = Math.max(...row);
  const sum = Math.log(sumOf(row.map((logit) => Math.exp(logit - largest)))) + largest;
  return row.map((logit) => logit - sum);
}

/** What llama-perplexity computes from the logits of both at the scored positions. */
function expectedOf(reference, model, ids, [sequences, length], first) {
  const found = { kld: [], loss: [], referenceLoss: [], same: [] };
  const vocabulary = reference.length / ids.length;
  const top = (row) => row.indexOf(Math.max(...row));
  for (let sequence = 0; sequence < sequences; ++sequence)
    for (let position = first; position + 1 < length; ++position) {
      const at = sequence * length + position;
      const [p, q] = [reference, model].map((all) =>
        logSoftmax([...all.subarray(at * vocabulary, (at + 1) * vocabulary)]),
      );
      found.kld.push(sumOf(p.map((value, i) => Math.exp(value) * (value - q[i]))));
      found.loss.push(-q[Number(ids[at + 1])]);
      found.referenceLoss.push(-p[Number(ids[at + 1])]);
      found.same.push(top(p) === top(q) ? 1 : 0);
    }
  return found;
}

/** A copy of a family's folder whose final norm is `factor` times as large: so are its logits. */
function sharpened(t, family, factor) {
  const folder = join(scratchFolder(t), family);
  mkdirSync(folder);
  cpSync(join(files, 'forward', family, 'config.json'), join(folder, 'config.json'));
  const tensors = readTensors(join(files, 'forward', family, 'model.safetensors'));
  const norm = tensors.get('model.norm.weight');
  norm.data = norm.data.map((value) => value * factor);
  writeFloats(join(folder, 'model.safetensors'), tensors);
  return folder;
}

test("every statistic matches PyTorch's logits, and the same logits times a factor", async (t) => {
  const quantizer = await quantizerFor(t);
  for (const family of ['llama', 'mistral', 'qwen2', 'qwen3']) {
    const expected = readTensors(join(files, 'forward', family, 'expected.safetensors'));
    const { data: ids, shape } = expected.get('input_ids');
    const { data: logits } = expected.get('logits');
    const reference = await modelFor(t, quantizer, join(files, 'forward', family));
    for (const factor of [0.5, 1.25, 8]) {
      const model = await modelFor(t, quantizer, sharpened(t, family, factor));
      const tokens = { data: BigInt64Array.from(ids, BigInt), shape };
      for (const [scored, first] of [
        [undefined, Math.floor(shape[1] / 2)],
        ['all', 0],
      ]) {
        const what = `${family} times ${factor}, ${scored}`;
        const given = scored ? { tokens, against: reference, scored } : { tokens, against: reference };
        const found = await quantizer.languageModel(model).evaluate(given);
        const wanted = expectedOf(
          logits,
          logits.map((logit) => logit * factor),
          ids,
          shape,
          first,
        );
        const { divergence } = found;
        const sorted = wanted.kld.toSorted((a, b) => a - b);
        const percentile = (share) => {
          const at = share * (sorted.length - 1);
          const below = sorted[Math.floor(at)];
          return below + (at - Math.floor(at)) * ((sorted[Math.floor(at) + 1] ?? below) - below);
        };
        assert.equal(found.tokens, wanted.kld.length, what);
        assert.equal(found.scored, scored ?? 'second-half', what);
        const close = (name, value) =>
          near(divergence[name], value, 1e-5 * Math.max(1, Math.abs(value)), `${what}: ${name}`);
        close('meanKld', meanOf(wanted.kld));
        close('meanKldError', errorOf(wanted.kld));
        close('medianKld', percentile(0.5));
        close('kld99', percentile(0.99));
        close('kld999', percentile(0.999));
        close('maxKld', sorted.at(-1));
        close('sameTop', meanOf(wanted.same));
        const ratios = wanted.loss.map((loss, i) => loss - wanted.referenceLoss[i]);
        close('logPerplexityRatio', meanOf(ratios));
        close('logPerplexityRatioError', errorOf(ratios));
        close('referencePerplexity', Math.exp(meanOf(wanted.referenceLoss)));
        near(found.bitsPerToken * Math.LN2, meanOf(wanted.loss), 1e-4, what);
      }
    }
  }
});

test('a model has no divergence from itself; every format we write has some', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf(2, 64);
  const against = async (model, options = {}) =>
    quantizer.languageModel(model).evaluate({ tokens, against: source, ...options });
  const same = (await against(source)).divergence;
  assert.deepEqual([same.meanKld, same.maxKld, same.logPerplexityRatio, same.sameTop], [0, 0, 0, 1]);
  const formats = ['compressed-tensors', 'quark', 'fake-quantized', 'gptq', 'gguf'];
  const found = {};
  for (const format of formats) {
    const target = format === 'gguf' ? memoryStream() : join(scratchFolder(t), format);
    const config = format === 'gguf' ? { dialect: 'gguf', recipe: 'q4_1' } : 'int4_wo_32';
    await quantizer.quantizeModel(source, config, { target: target.stream ?? target, format });
    found[format] = await against(await modelFor(t, quantizer, target.bytes?.() ?? target));
    const { meanKld, maxKld, kld999, kld99, medianKld, sameTop } = found[format].divergence;
    assert.ok(meanKld > 1e-3 && meanKld < 0.1, `${format}: ${meanKld}`);
    assert.ok(maxKld >= kld999 && kld999 >= kld99 && kld99 >= medianKld && medianKld > 0, format);
    assert.ok(sameTop > 0.8 && sameTop < 1, format);
  }
  near(found.quark.divergence.meanKld, found['fake-quantized'].divergence.meanKld, 1e-6, 'the same values');
  const alone = await quantizer.languageModel(source).evaluate({ tokens, scored: 'second-half' });
  near(found.gptq.divergence.referencePerplexity, alone.perplexity, 1e-9, 'the reference alone');
});

test('inputs of a GGUF file are rounded as llama.cpp rounds them, unless float32 is asked for', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf(1, 64);
  const gguf = async (recipe) => {
    const { stream, bytes } = memoryStream();
    await quantizer.quantizeModel(source, { dialect: 'gguf', recipe }, { target: stream, format: 'gguf' });
    return modelFor(t, quantizer, bytes());
  };
  const evaluate = (model, options) => quantizer.languageModel(model).evaluate({ tokens, ...options });
  const [whole, half, blocks] = [await gguf('f32'), await gguf('f16'), await gguf('q8_0')];
  const rounded = await evaluate(blocks, { against: whole });
  assert.equal(rounded.activations, 'gguf');
  const exact = await evaluate(blocks, { against: whole, activations: 'float32' });
  assert.equal(exact.activations, 'float32');
  assert.ok(rounded.divergence.meanKld > 1.2 * exact.divergence.meanKld, 'both weights and inputs are rounded');
  assert.equal(rounded.divergence.referencePerplexity, exact.divergence.referencePerplexity, 'F32 rounds nothing');
  const same = await evaluate(whole, { against: whole });
  assert.equal(same.divergence.maxKld, 0);
  assert.notEqual((await evaluate(half, { activations: 'gguf' })).perplexity, (await evaluate(half, {})).perplexity);
  assert.equal((await evaluate(half, {})).activations, 'float32', 'by itself');
  assert.equal((await evaluate(source, { against: whole })).activations, 'float32', 'a folder');
  await assert.rejects(evaluate(source, { activations: 'gguf' }), {
    code: 'argument-invalid',
    where: 'activations',
    message: /safetensors/,
  });
});

test('the divergence does not depend on threads or memory, nor on how the heads are stored', async (t) => {
  const all = [];
  for (const options of [{ threads: 0 }, { threads: 2 }, { threads: 3, memoryBudgetBytes: 200 * 1024 * 1024 }]) {
    const quantizer = await quantizerFor(t, options);
    const source = await modelFor(t, quantizer, tinyLlama);
    const half = await modelFor(t, quantizer, join(tinyLlama, 'bf16'));
    all.push((await quantizer.languageModel(half).evaluate({ tokens: tokensOf(5, 40), against: source })).divergence);
    assert.equal(quantizer.liveObjects, 2, 'the models');
  }
  assert.deepEqual(all[1], all[0]);
  assert.deepEqual(all[2], all[0]);
});

test('references that cannot be compared are refused before anything runs', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const other = await modelFor(t, quantizer, join(files, 'forward/qwen2'));
  const refused = (options, error) =>
    assert.rejects(
      quantizer.languageModel(source).evaluate({ tokens: { data: [1, 2, 3, 4], shape: [4] }, ...options }),
      error,
    );
  await refused(
    { against: other },
    { code: 'argument-invalid', where: 'against', message: /vocabulary of \d+ tokens, but the model has 288/ },
  );
  await refused({ against: {} }, { code: 'argument-invalid', where: 'against' });
  await refused({ scored: 'half' }, { code: 'argument-invalid', where: 'scored' });
  await refused(
    { against: source, tokens: { data: [1, 2], shape: [2] } },
    { code: 'argument-invalid', where: 'tokens', message: /no second half/ },
  );
  const broken = sharpened(t, 'qwen2', Number.NaN);
  await assert.rejects(
    quantizer.languageModel(other).evaluate({
      tokens: { data: [1, 2, 3, 4], shape: [4] },
      against: await modelFor(t, quantizer, broken),
    }),
    { code: 'value-not-finite' },
  );
});

test('one NaN in the head is reported for any predicted token', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = sharpened(t, 'llama', 1);
  const tensors = readTensors(join(folder, 'model.safetensors'));
  const head = tensors.get('lm_head.weight') ?? tensors.get('model.embed_tokens.weight');
  head.data[head.data.length - 1] = Number.NaN;
  writeFloats(join(folder, 'model.safetensors'), tensors);
  const model = await modelFor(t, quantizer, folder);
  const tokens = { data: [1, 2, 3, 4], shape: [4] };
  await assert.rejects(quantizer.languageModel(model).evaluate({ tokens }), { code: 'value-not-finite' });
});

test("text is split into llama-perplexity's windows, of which the second half is scored", () => {
  const tokenizer = {
    encode: (words, { add_special_tokens: special = true } = {}) => {
      const plain = [...words].map((letter) => letter.charCodeAt(0) - 96);
      return special ? [99, ...plain] : plain;
    },
  };
  const cut = (text, length) => [...tokensOfText({ text, tokenizer, length }, 100, 'overwritten').data];
  // llama-perplexity: [99, 1, 2, ...] in pieces of 3, the first token of each replaced by 99.
  assert.deepEqual(cut('abcdefg', 3), [99, 1, 2, 99, 4, 5]);
  assert.deepEqual(cut('abcdefgh', 3), [99, 1, 2, 99, 4, 5, 99, 7, 8]);
});

test('evaluate --against prints what llama-perplexity prints, and says which text and which tokens', async (t) => {
  const half = join(tinyLlama, 'bf16');
  const text = join(scratchFolder(t), 'text.txt');
  writeFileSync(text, readFileSync(join(files, 'tiny-llama/README.md')).subarray(0, 600));
  const given = ['evaluate', half, '--against', tinyLlama, '--text', text, '--length', '64', '--threads', '0'];
  const { code, stdout, stderr } = await cli(given);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  for (const row of ['mean KLD ', 'median KLD ', '99 % KLD ', '99.9 % KLD ', 'maximum KLD ', 'ln(PPL ratio) '])
    assert.match(stdout, new RegExp(`^${row.replaceAll(/[.()]/g, '\\$&')} +-?\\d+\\.\\d{6}`, 'm'));
  assert.match(stdout, /same top token +\d+\.\d{3} ± \d+\.\d{3} %/);
  assert.match(stdout, /in the second half of each, of .*text\.txt/);
  const { document } = await cliJson(given);
  assert.equal(document.scored, 'second-half');
  assert.equal(document.data, text);
  assert.equal(document.against, tinyLlama);
  assert.ok(document.divergence.meanKld > 0);
  const whole = await cliJson([...given, '--scored', 'all']);
  assert.ok(whole.document.tokens > document.tokens);
  assert.equal((await cli([...given, '--scored', 'some'])).code, 2);
  assert.equal((await cli(['evaluate', half, '--against', join(files, 'nowhere'), '--text', text])).code, 1);
});
