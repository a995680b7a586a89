// Embeddings of encoders: those of transformers, their agreement with a reference's, and `wasmquant evaluate` of an encoder.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { cli, cliJson } from '../cli/process.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { safetensors } from '../written_model.mjs';

const folderOf = (family) => join(files, 'forward', family);
const words = Array.from({ length: 40 }, (_, i) => `w${i}`);
/** A word is a token; nothing is put around a text. */
const tokenizer = { encode: (text) => text.split(' ').map((word) => words.indexOf(word)) };
const sentences = ['w3 w4 w5', 'w6 w7', 'w8 w9 w10 w11 w12', 'w13 w3 w20 w21', 'w30 w31 w32'];

function expectedOf(family, pooling) {
  const tensors = readTensors(join(folderOf(family), 'expected.safetensors'));
  const { data, shape } = tensors.get(pooling);
  const rows = Array.from({ length: shape[0] }, (_, row) => data.slice(row * shape[1], (row + 1) * shape[1]));
  const ids = [...tensors.get('input_ids').data].map(Number);
  return { rows, texts: [ids.slice(0, 24), ids.slice(24)].map((row) => row.map((id) => `w${id}`).join(' ')) };
}

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
  for (const name of ['modules.json', '1_Pooling/config.json'])
    assert.equal(read(join(target, name)), read(join(folder, name)), name);
  assert.throws(() => read(join(target, 'original/config.json')), { code: 'ENOENT' });
  assert.notDeepEqual(vectors, (await encoder.embeddings({ texts: sentences, tokenizer, pooling: 'mean' })).vectors);
});

/** As sentence-transformers describes it; `original` is no module. */
function withFirstToken(folder) {
  const config = JSON.stringify({ pooling_mode_cls_token: true });
  for (const name of ['1_Pooling', 'original']) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'config.json'), config);
  }
  writeFileSync(join(folder, 'modules.json'), JSON.stringify([{ path: '' }, { path: '1_Pooling' }, { path: '../x' }]));
}

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
  await assert.rejects(encoder.evaluate({ tokens }), /is an encoder.*compare the embeddings/);
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

/** A folder of the encoder with a tokenizer for its words, and a file of sentences. */
function withTokenizer(t) {
  const folder = join(scratchFolder(t), 'model');
  cpSync(folderOf('bert'), folder, { recursive: true });
  const vocab = Object.fromEntries(words.map((word, i) => [word, i]));
  const model = { type: 'WordLevel', vocab, unk_token: 'w0' };
  const parts = { normalizer: null, pre_tokenizer: { type: 'Whitespace' }, post_processor: null, decoder: null };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify({ version: '1.0', added_tokens: [], ...parts, model }));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast' }));
  writeFileSync(join(folder, '../texts.txt'), [...sentences, '', sentences[0]].join('\n'));
  return { folder, text: join(folder, '../texts.txt') };
}

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

test('a dense module behind the pooling is kept in a folder, and said to be missing in GGUF', async (t) => {
  const folder = bertWithVocabulary(t);
  const modules = ['Transformer', 'Pooling', 'Dense'].map((name, idx) => ({
    idx,
    path: idx === 0 ? '' : `${idx}_${name}`,
    type: `sentence_transformers.models.${name}`,
  }));
  writeFileSync(join(folder, 'modules.json'), JSON.stringify(modules));
  mkdirSync(join(folder, '2_Dense'));
  for (const name of ['config.json', 'model.safetensors']) writeFileSync(join(folder, '2_Dense', name), name);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folder);
  const [said] = quantizer.plan(source, 'q8_0').diagnostics.filter(({ where }) => where === 'modules.json');
  assert.equal(said.code, 'loader-limit');
  assert.equal(said.severity, 'warning');
  assert.match(said.message, /^2_Dense is left out: llama\.cpp computes no dense layer/);
  assert.ok(!quantizer.plan(source, 'int8').diagnostics.some(({ where }) => where === 'modules.json'));
  const target = join(folder, '../with-dense');
  await quantizer.quantizeModel(source, 'int8', { target });
  for (const name of ['config.json', 'model.safetensors'])
    assert.equal(readFileSync(join(target, '2_Dense', name), 'utf8'), name);
});

test('a file that stays large because of its embeddings says which format shrinks them', async (t) => {
  const folder = bertWithVocabulary(t);
  const tensors = Object.fromEntries(readTensors(join(folder, 'model.safetensors')));
  const word = tensors['embeddings.word_embeddings.weight'];
  const rows = 4000;
  tensors['embeddings.word_embeddings.weight'] = {
    ...word,
    shape: [rows, word.shape[1]],
    data: Float32Array.from({ length: rows * word.shape[1] }, (_, i) => word.data[i % word.data.length]),
  };
  rmSync(join(folder, 'model.safetensors'));
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, vocab_size: rows }));
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folder);
  const plan = quantizer.plan(source, 'int4_wo_per_channel');
  assert.ok(plan.totals.bytesAfter > plan.totals.bytesBefore / 2);
  const low = plan.diagnostics.find(({ code }) => code === 'low-coverage');
  assert.match(
    low.hint,
    /^the embeddings stay as large as they are in compressed-tensors; a GGUF file .* q8_0 or q4_k_m/,
  );
  // What is advised is smaller.
  assert.ok(quantizer.plan(source, 'q8_0').totals.bytesAfter < plan.totals.bytesAfter);
});

/** The encoder with WordPiece, as conversion to GGUF reads it. */
function bertWithVocabulary(t) {
  const { folder } = withTokenizer(t);
  const vocab = Object.fromEntries(words.map((word, i) => [word, i]));
  for (const [i, word] of ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].entries()) {
    delete vocab[`w${i + 35}`];
    vocab[word] = i + 35;
  }
  const model = { type: 'WordPiece', vocab, unk_token: '[UNK]', continuing_subword_prefix: '##' };
  const pre = { normalizer: { type: 'BertNormalizer', lowercase: true }, pre_tokenizer: { type: 'BertPreTokenizer' } };
  const added = Object.entries(vocab).filter(([word]) => word.startsWith('['));
  const added_tokens = added.map(([content, id]) => ({ id, content, special: true }));
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify({ version: '1.0', added_tokens, ...pre, model }));
  const special = {
    cls_token: '[CLS]',
    sep_token: '[SEP]',
    unk_token: '[UNK]',
    pad_token: '[PAD]',
    mask_token: '[MASK]',
  };
  writeFileSync(
    join(folder, 'tokenizer_config.json'),
    JSON.stringify({ tokenizer_class: 'BertTokenizer', ...special }),
  );
  withFirstToken(folder);
  return folder;
}
