// Embeddings of encoders: those of transformers, their agreement with a reference's, and `wasmquant evaluate` of an encoder.
import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import {
  bertWithVocabulary,
  expectedOf,
  folderOf,
  sentences,
  tokenizer,
  withFirstToken,
  withTokenizer,
} from './encoder_model.mjs';

for (const family of ['bert', 'roberta'])
  test(`embeddings of ${family} match transformers`, async (t) => {
    const quantizer = await quantizerFor(t);
    const encoder = quantizer.languageModel(await modelFor(t, quantizer, folderOf(family)));
    assert.equal(await encoder.isEncoder(), true);
    for (const pooling of ['mean', 'first']) {
      const { rows, texts } = expectedOf(family, pooling);
      const { vectors, tokens } = await encoder.embeddings({ texts, tokenizer, pooling });
      assert.equal(tokens, 48);
      for (const [i, vector] of vectors.entries()) {
        const length = Math.hypot(...rows[i]);
        const largest = Math.max(...vector.map((value, at) => Math.abs(value - rows[i][at] / length)));
        assert.ok(largest < 2e-6, `${pooling} ${i}: ${largest}`);
      }
    }
  });

test('an embedding depends neither on the other texts nor on the workers', async (t) => {
  const alone = await quantizerFor(t);
  const two = await quantizerFor(t, { threads: 2 });
  const of = async (quantizer, texts) => {
    const model = await modelFor(t, quantizer, folderOf('bert'));
    return (await quantizer.languageModel(model).embeddings({ texts, tokenizer })).vectors;
  };
  const all = await of(alone, sentences);
  assert.deepEqual(await of(two, sentences), all);
  assert.deepEqual((await of(alone, [sentences[2]]))[0], all[2]);
});

test('the pooling follows 1_Pooling/config.json', async (t) => {
  const folder = join(scratchFolder(t), 'model');
  cpSync(folderOf('bert'), folder, { recursive: true });
  withFirstToken(folder);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folder);
  const encoder = quantizer.languageModel(source);
  const { pooling, vectors } = await encoder.embeddings({ texts: sentences, tokenizer });
  assert.equal(pooling, 'first');
  const target = join(folder, '../int8');
  await quantizer.quantizeModel(source, 'int8', { target });
  const read = (path) => readFileSync(path, 'utf8');
  for (const name of ['modules.json', '1_Pooling/config.json', 'original/config.json'])
    assert.equal(read(join(target, name)), read(join(folder, name)), name);
  assert.notDeepEqual(vectors, (await encoder.embeddings({ texts: sentences, tokenizer, pooling: 'mean' })).vectors);
});

/** Spearman's correlation without ties, by its other formula. */
function rankCorrelation(a, b) {
  const ranks = (values) => {
    const order = [...values.keys()].sort((x, y) => values[x] - values[y]);
    return values.map((_, i) => order.indexOf(i));
  };
  const [left, right] = [ranks(a), ranks(b)];
  const sum = left.reduce((all, rank, i) => all + (rank - right[i]) ** 2, 0);
  return 1 - (6 * sum) / (a.length * (a.length ** 2 - 1));
}

test('agreement: cosines, and the order of similarities', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folderOf('bert'));
  const target = join(scratchFolder(t), 'int4');
  await quantizer.quantizeModel(source, 'int4_wo_per_channel', { target });
  const coarse = quantizer.languageModel(await modelFor(t, quantizer, target));
  const given = { texts: sentences, tokenizer };
  const { agreement, vectors } = await coarse.embeddings({ ...given, against: source });
  const { vectors: expected } = await quantizer.languageModel(source).embeddings(given);
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const cosines = vectors.map((vector, i) => dot(vector, expected[i]));
  const pairs = (all) => all.flatMap((a, i) => all.slice(i + 1).map((b) => dot(a, b)));
  const mean = cosines.reduce((sum, value) => sum + value) / cosines.length;
  assert.ok(Math.abs(agreement.meanCosine - mean) < 1e-9);
  assert.ok(Math.abs(agreement.leastCosine - Math.min(...cosines)) < 1e-9);
  assert.equal(agreement.leastText, cosines.indexOf(Math.min(...cosines)));
  assert.ok(Math.abs(agreement.rankCorrelation - rankCorrelation(pairs(vectors), pairs(expected))) < 1e-9);
  assert.ok(mean > 0.8 && mean < 0.9999, `${mean}`);
  const same = await quantizer.languageModel(source).embeddings({ ...given, against: source });
  assert.ok(Math.abs(same.agreement.meanCosine - 1) < 1e-6);
  assert.equal(same.agreement.rankCorrelation, 1);
  assert.equal(same.agreement.sameNearest, 1);
});

test('embeddings refuses what it cannot compare, and other methods name it as the one for encoders', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folderOf('bert'));
  const encoder = quantizer.languageModel(source);
  const refused = (options, where) => assert.rejects(encoder.embeddings(options), { code: 'argument-invalid', where });
  await refused({ texts: sentences }, 'tokenizer');
  await refused({ texts: 'w3', tokenizer }, 'texts');
  await refused({ texts: sentences.slice(0, 2), tokenizer, against: source }, 'texts');
  await refused({ texts: ['w3 w4', ''], tokenizer: { encode: (text) => (text === '' ? [] : [3, 4]) } }, 'texts');
  await refused({ texts: sentences, tokenizer, length: 1 }, 'length');
  await refused({ texts: sentences, tokenizer, against: {} }, 'against');
  await refused({ texts: ['w3 nothing'], tokenizer }, 'tokens');
  const decoder = quantizer.languageModel(await modelFor(t, quantizer, tinyLlama));
  assert.equal(await decoder.isEncoder(), false);
  await assert.rejects(
    decoder.embeddings({ texts: sentences, tokenizer }),
    /is no encoder.*bert, roberta, xlm-roberta/,
  );
  const tokens = { data: [3, 4, 5], shape: [1, 3] };
  await assert.rejects(
    encoder.evaluate({ tokens }),
    /is an encoder, which predicts no next token: compare the embeddings/,
  );
});

test('the curve of an encoder measures its embeddings', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folderOf('bert'));
  const rows = sentences.map((text) => tokenizer.encode(text));
  const { metric, original, points } = await quantizer.curve(source, {
    tokens: { rows },
    schemes: ['int8', 'int4_wo_per_channel'],
  });
  assert.equal(metric.kind, 'embedding-error');
  assert.equal(metric.windows, sentences.length);
  assert.equal(original.loss, 0);
  const [int8, int4] = points.map(({ loss }) => loss);
  assert.ok(int8 > 0 && int8 < 0.001 && int4 > 10 * int8, `${int8} ${int4}`);
});

test('evaluate of an encoder prints cosines, ranks, a word and its rule', async (t) => {
  const { folder, text } = withTokenizer(t);
  const target = join(folder, '../int8');
  assert.equal((await cli(['quantize', folder, '-o', target, '--preset', 'int8', '--quiet'])).code, 0);
  const { code, stdout, stderr } = await cli(['evaluate', target, '--against', folder, '--text', text]);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  assert.match(stdout, /mean cosine {7}0\.999\d+ {2}good/);
  assert.match(stdout, /smallest cosine {3}0\.99\d+ {2}of "w/);
  assert.match(stdout, /rank correlation {2}(0\.\d+|1\.0+) /);
  assert.match(stdout, /5 texts, 17 tokens, mean of the tokens/);
  assert.match(stdout, /good: 1 − cosine up to 1\.0 %/);
  const report = join(folder, '../report.json');
  const { document } = await cliJson(['evaluate', target, '--against', folder, '--text', text, '--report', report]);
  assert.equal(document.texts, 5);
  assert.equal(document.vectors, undefined);
  assert.deepEqual(JSON.parse(readFileSync(report, 'utf8')), document);
  const alone = await cli(['evaluate', target, '--text', text]);
  assert.equal(alone.code, 2);
  assert.match(alone.stderr, /encoder.*\n.*--against/);
  assert.equal((await cli(['evaluate', target, '--against', folder])).code, 2);
});

test('an encoder as GGUF is measured from its own metadata', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, bertWithVocabulary(t));
  for (const [recipe, least] of [
    ['f16', 0.9999],
    ['bf16', 0.999],
  ]) {
    const { stream, bytes } = memoryStream();
    await quantizer.quantizeModel(source, { dialect: 'gguf', recipe }, { target: stream, format: 'gguf' });
    const encoder = quantizer.languageModel(await modelFor(t, quantizer, bytes()));
    const { agreement, pooling } = await encoder.embeddings({ texts: sentences, tokenizer, against: source });
    assert.equal(pooling, 'first');
    assert.ok(agreement.meanCosine > least, `${recipe}: ${agreement.meanCosine}`);
  }
});
