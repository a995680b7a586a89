// The modules that sentence-transformers adds to an encoder: poolings and dense layers, computed as its classes do, and broken files.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { cli } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';
import { bertWithVocabulary, expectedOf, folderOf, sentences, tokenizer, withTokenizer } from './encoder_model.mjs';

const width = 24;
const usualTypes = { '': 'Transformer', '1_Pooling': 'Pooling' };

/** Folders with their classes, and what each holds: a JSON value or bytes, by file name. */
function writeModules(folder, types, contents) {
  const rows = Object.entries({ ...usualTypes, ...types });
  const modules = rows.map(([path, type], idx) => ({
    idx,
    name: `${idx}`,
    path,
    type: `sentence_transformers.models.${type}`,
  }));
  writeFileSync(join(folder, 'modules.json'), JSON.stringify(modules));
  for (const [path, content] of Object.entries(contents)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), content instanceof Uint8Array ? content : JSON.stringify(content));
  }
}

function encoderFolder(t) {
  const folder = join(scratchFolder(t), 'model');
  cpSync(folderOf('bert'), folder, { recursive: true });
  return folder;
}

const pooling = (mode) => ({
  word_embedding_dimension: width,
  ...Object.fromEntries(
    ['cls_token', 'mean_tokens', 'max_tokens', 'mean_sqrt_len_tokens', 'weightedmean_tokens', 'lasttoken'].map(
      (key) => [`pooling_mode_${key}`, key === mode],
    ),
  ),
});
const dense = (inputs, outputs, activation, more = {}) => ({
  in_features: inputs,
  out_features: outputs,
  bias: true,
  activation_function: `torch.nn.modules.${activation}`,
  ...more,
});

/** A linear layer with values of 16 bits, so that all dtypes hold them. */
function linearOf(inputs, outputs, seed) {
  const upper = (values) => new Float32Array(new Uint32Array(values.buffer).map((bits) => bits & 0xffff0000).buffer);
  return { weight: upper(noise(inputs * outputs, seed)), bias: upper(noise(outputs, seed + 1)), inputs, outputs };
}
const asStored = {
  F32: (values) => values,
  BF16: (values) => Uint16Array.from(new Uint32Array(values.slice().buffer), (bits) => bits >>> 16),
};
function linearFile({ weight, bias, inputs, outputs }, dtype, hasBias = true) {
  const store = asStored[dtype];
  const tensors = { 'linear.weight': { dtype, shape: [outputs, inputs], data: store(weight) } };
  if (hasBias) tensors['linear.bias'] = { dtype, shape: [outputs], data: store(bias) };
  return safetensors(tensors);
}

/** activation(W x + b) in double precision. */
const applied = ({ weight, bias, inputs }, x, activation, hasBias = true) =>
  Array.from(bias, (start, row) => {
    let sum = hasBias ? start : 0;
    for (let i = 0; i < inputs; ++i) sum += weight[row * inputs + i] * x[i];
    return activation(sum);
  });
const normalized = (vector) => vector.map((value) => value / Math.hypot(...vector));

test('dense modules are computed on the pooled states that transformers gives', async (t) => {
  const quantizer = await quantizerFor(t);
  const [first, second] = [linearOf(width, 40, 3), linearOf(40, 16, 7)];
  const { rows, texts } = expectedOf('bert', 'mean');
  const types = { '2_Dense': 'Dense', '3_Normalize': 'Normalize', '4_Dense': 'Dense' };
  for (const [activation, computed] of [
    ['activation.Tanh', Math.tanh],
    ['activation.ReLU', (value) => Math.max(0, value)],
    ['activation.Sigmoid', (value) => 1 / (1 + Math.exp(-value))],
  ]) {
    const folder = encoderFolder(t);
    writeModules(folder, types, {
      '1_Pooling/config.json': pooling('mean_tokens'),
      '2_Dense/config.json': dense(width, 40, activation),
      '2_Dense/model.safetensors': linearFile(first, 'F32'),
      '4_Dense/config.json': dense(40, 16, 'linear.Identity', { bias: false }),
      '4_Dense/model.safetensors': linearFile(second, 'BF16', false),
    });
    const encoder = quantizer.languageModel(await modelFor(t, quantizer, folder));
    const { vectors, pooling: how, dense: folders } = await encoder.embeddings({ texts, tokenizer });
    assert.equal(how, 'mean');
    assert.deepEqual(folders, ['2_Dense', '4_Dense']);
    for (const [i, vector] of vectors.entries()) {
      const hidden = normalized(applied(first, rows[i], computed));
      const expected = normalized(applied(second, hidden, (value) => value, false));
      assert.equal(vector.length, 16);
      const largest = Math.max(...expected.map((value, at) => Math.abs(value - vector[at])));
      assert.ok(largest < 2e-6, `${activation} ${i}: ${largest}`);
    }
  }
});

test('the dense modules of the folder are computed for both models, and evaluate names them', async (t) => {
  const { folder, text } = withTokenizer(t);
  addDense(folder);
  const target = join(folder, '../int8');
  assert.equal((await cli(['quantize', folder, '-o', target, '--preset', 'int8', '--quiet'])).code, 0);
  const { stdout, stderr } = await cli(['evaluate', target, '--against', folder, '--text', text]);
  assert.equal(stderr, '');
  assert.match(stdout, /mean cosine {7}0\.99\d+/);
  assert.match(stdout, /first token, then 2_Dense, of /);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folder);
  const { metric, points } = await quantizer.curve(source, {
    tokens: { rows: sentences.map((sentence) => tokenizer.encode(sentence)) },
    schemes: ['int8'],
  });
  assert.equal(metric.kind, 'embedding-error');
  assert.ok(points[0].loss > 0 && points[0].loss < 0.01, `${points[0].loss}`);
});

test('poolings of new and old releases are read, and those that are not computed are refused', async (t) => {
  const quantizer = await quantizerFor(t);
  const of = async (config, options = {}) => {
    const folder = encoderFolder(t);
    writeModules(folder, {}, { '1_Pooling/config.json': config });
    const encoder = quantizer.languageModel(await modelFor(t, quantizer, folder));
    return (await encoder.embeddings({ texts: sentences, tokenizer, ...options })).pooling;
  };
  assert.equal(await of(pooling('cls_token')), 'first');
  assert.equal(await of(pooling('lasttoken')), 'last');
  assert.equal(await of({ embedding_dimension: width, pooling_mode: 'cls', include_prompt: true }), 'first');
  assert.equal(await of({ embedding_dimension: width, pooling_mode: ['mean'] }), 'mean');
  assert.equal(await of({ word_embedding_dimension: width }), 'mean');
  for (const [config, names] of [
    [pooling('max_tokens'), 'max'],
    [pooling('weightedmean_tokens'), 'weightedmean'],
    [{ ...pooling('cls_token'), pooling_mode_mean_tokens: true }, 'cls and mean'],
    [{ pooling_mode: ['mean', 'max'] }, 'mean and max'],
  ]) {
    await assert.rejects(of(config), {
      code: 'format-unsupported',
      where: '1_Pooling/config.json',
      detail: `asks for ${names}; computed are mean, cls and lasttoken, one of them: give pooling`,
    });
    assert.equal(await of(config, { pooling: 'mean' }), 'mean');
  }
});

/** Folders whose modules cannot be computed: what is wrong with them, and the error. */
const unusable = {
  'a pickle': {
    contents: {
      '2_Dense/config.json': dense(width, 8, 'activation.Tanh'),
      '2_Dense/pytorch_model.bin': { not: 'read' },
    },
    error: { code: 'format-unsupported', where: '2_Dense/pytorch_model.bin', message: /pickle of PyTorch/ },
  },
  'no weights': {
    contents: { '2_Dense/config.json': dense(width, 8, 'activation.Tanh') },
    error: { code: 'file-invalid', where: '2_Dense/model.safetensors', message: /is missing/ },
  },
  'no config': { contents: {}, error: { code: 'file-invalid', where: '2_Dense/config.json', message: /is missing/ } },
  'another activation': {
    contents: { '2_Dense/config.json': dense(width, 8, 'activation.GELU') },
    error: { code: 'format-unsupported', where: '2_Dense/config.json', message: /GELU; computed are Identity, ReLU/ },
  },
  'a residual': {
    contents: { '2_Dense/config.json': dense(width, 8, 'activation.Tanh', { use_residual: true }) },
    error: { code: 'format-unsupported', where: '2_Dense/config.json', message: /use_residual/ },
  },
  'dense states of tokens': {
    contents: { '2_Dense/config.json': dense(width, 8, 'activation.Tanh', { module_input_name: 'token_embeddings' }) },
    error: { code: 'format-unsupported', where: '2_Dense/config.json', message: /module_input_name/ },
  },
  'another width': {
    contents: {
      '2_Dense/config.json': dense(width + 1, 8, 'activation.Tanh'),
      '2_Dense/model.safetensors': linearFile(linearOf(width + 1, 8, 5), 'F32'),
    },
    error: { code: 'shape-mismatch', where: '2_Dense/config.json', message: /takes 25 features, .* has 24/ },
  },
  'weights of another shape': {
    contents: {
      '2_Dense/config.json': dense(width, 8, 'activation.Tanh'),
      '2_Dense/model.safetensors': linearFile(linearOf(width, 9, 5), 'F32'),
    },
    error: { code: 'shape-mismatch', where: '2_Dense/model.safetensors: linear.weight', message: /\[9,24\].*\[8,24\]/ },
  },
  'a module of another class': {
    types: { '2_LayerNorm': 'LayerNorm' },
    contents: {},
    error: { code: 'format-unsupported', where: 'modules.json', message: /2_LayerNorm of class LayerNorm/ },
  },
};

for (const [name, { types = { '2_Dense': 'Dense' }, contents, error }] of Object.entries(unusable))
  test(`embeddings are refused, never wrong: ${name}`, async (t) => {
    const folder = encoderFolder(t);
    writeModules(folder, types, { '1_Pooling/config.json': pooling('mean_tokens'), ...contents });
    const quantizer = await quantizerFor(t);
    const encoder = quantizer.languageModel(await modelFor(t, quantizer, folder));
    await assert.rejects(encoder.embeddings({ texts: sentences, tokenizer }), error);
  });

/** Broken files: their text, and where the error is. */
const broken = {
  'modules.json that is cut off': ['modules.json', '[{"path": ""', 'json-invalid', 'modules.json: byte 12'],
  'modules.json that is an object': ['modules.json', '{"path": ""}', 'file-invalid', 'modules.json: /'],
  'a module without a class': ['modules.json', '[{"path": "1_Pooling"}]', 'file-invalid', 'modules.json: /0/type'],
  'a module whose path is a number': [
    'modules.json',
    '[{"path": 1, "type": "x.Pooling"}]',
    'file-invalid',
    'modules.json: /0/path',
  ],
  'a pooling that is not JSON': ['1_Pooling/config.json', 'pooling', 'json-invalid', '1_Pooling/config.json: byte 0'],
  'a pooling that is a list': ['1_Pooling/config.json', '[]', 'file-invalid', '1_Pooling/config.json: /'],
  'a pooling whose flag is a text': [
    '1_Pooling/config.json',
    '{"pooling_mode_cls_token": "yes"}',
    'file-invalid',
    '1_Pooling/config.json: /pooling_mode_cls_token',
  ],
  'a pooling of an unknown name': [
    '1_Pooling/config.json',
    '{"pooling_mode": "median"}',
    'file-invalid',
    '1_Pooling/config.json: /pooling_mode',
  ],
  'a dense module whose width is a text': [
    '2_Dense/config.json',
    '{"in_features": "24", "out_features": 8}',
    'file-invalid',
    '2_Dense/config.json: /in_features',
  ],
};

/** Pools by the first token, with a dense layer behind. */
function addDense(folder) {
  writeModules(
    folder,
    { '2_Dense': 'Dense' },
    {
      '1_Pooling/config.json': pooling('cls_token'),
      '2_Dense/config.json': dense(width, 8, 'activation.Tanh'),
      '2_Dense/model.safetensors': linearFile(linearOf(width, 8, 5), 'F32'),
    },
  );
}

/** A BERT with a vocabulary, pooled by its first token, and a dense layer behind. */
function bertWithDense(t) {
  const folder = bertWithVocabulary(t);
  addDense(folder);
  return folder;
}

for (const [name, [file, text, code, where]] of Object.entries(broken))
  test(`${name} is an error for embeddings and GGUF, a warning elsewhere`, async (t) => {
    const folder = bertWithDense(t);
    writeFileSync(join(folder, file), text);
    const quantizer = await quantizerFor(t);
    const source = await modelFor(t, quantizer, folder);
    await assert.rejects(quantizer.languageModel(source).embeddings({ texts: sentences, tokenizer }), { code, where });
    await assert.rejects(() => quantizer.plan(source, 'q8_0'), { code, where });
    const [first] = (await quantizer.plan(source, 'int8')).diagnostics;
    assert.deepEqual([first.severity, first.code, first.where], ['warning', code, where]);
    assert.match(first.hint, /^correct the file/);
  });

test('a dense module behind the pooling is kept in a folder, and said to be missing in GGUF', async (t) => {
  const folder = bertWithDense(t);
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folder);
  const [said] = (await quantizer.plan(source, 'q8_0')).diagnostics.filter(({ where }) => where === 'modules.json');
  assert.equal(said.code, 'loader-limit');
  assert.equal(said.severity, 'warning');
  assert.match(said.message, /^2_Dense is left out: llama\.cpp computes no dense layer/);
  assert.ok(!(await quantizer.plan(source, 'int8')).diagnostics.some(({ where }) => where === 'modules.json'));
  const target = join(folder, '../with-dense');
  await quantizer.quantizeModel(source, 'int8', { target });
  for (const name of ['2_Dense/config.json', '2_Dense/model.safetensors'])
    assert.deepEqual(readFileSync(join(target, name)), readFileSync(join(folder, name)), name);
  // The file's own pooling, the folder's dense module: both models by the same steps.
  const { stream, bytes } = memoryStream();
  await quantizer.quantizeModel(source, { dialect: 'gguf', recipe: 'f16' }, { target: stream, format: 'gguf' });
  const encoder = quantizer.languageModel(await modelFor(t, quantizer, bytes()));
  const { agreement, dense: folders } = await encoder.embeddings({ texts: sentences, tokenizer, against: source });
  assert.deepEqual(folders, ['2_Dense']);
  assert.ok(agreement.meanCosine > 0.9999, `${agreement.meanCosine}`);
});

test('the pooling goes into GGUF as llama.cpp numbers it, for encoders and decoders', async (t) => {
  const quantizer = await quantizerFor(t);
  const written = async (folder, key) => {
    const { stream, bytes } = memoryStream();
    const source = await modelFor(t, quantizer, folder);
    await quantizer.quantizeModel(source, { dialect: 'gguf', recipe: 'f16' }, { target: stream, format: 'gguf' });
    return (await modelFor(t, quantizer, bytes())).metadata[key];
  };
  for (const [config, number] of [
    [pooling('mean_tokens'), '1'],
    [{ embedding_dimension: width, pooling_mode: 'cls' }, '2'],
    [{ embedding_dimension: width, pooling_mode: 'lasttoken' }, '3'],
  ]) {
    const folder = bertWithVocabulary(t);
    writeModules(folder, {}, { '1_Pooling/config.json': config });
    assert.equal(await written(folder, 'bert.pooling_type'), number);
  }
  const decoder = join(scratchFolder(t), 'model');
  cpSync(folderOf('qwen3'), decoder, { recursive: true });
  assert.equal(await written(decoder, 'qwen3.pooling_type'), undefined);
  writeModules(decoder, {}, { '1_Pooling/config.json': pooling('lasttoken') });
  assert.equal(await written(decoder, 'qwen3.pooling_type'), '3');
  const folder = bertWithVocabulary(t);
  writeModules(folder, {}, { '1_Pooling/config.json': pooling('max_tokens') });
  const { diagnostics } = await quantizer.plan(await modelFor(t, quantizer, folder), 'q8_0');
  const said = diagnostics.find(({ where }) => where === '1_Pooling/config.json');
  assert.match(
    said.message,
    /^the GGUF file has no pooling key, because llama\.cpp supports only mean, cls and lasttoken, and this model uses max/,
  );
});

/** The encoder with so many rows of its word embedding. */
function withRows(t, rows) {
  const folder = bertWithVocabulary(t);
  const tensors = Object.fromEntries(readTensors(join(folder, 'model.safetensors')));
  const word = tensors['embeddings.word_embeddings.weight'];
  tensors['embeddings.word_embeddings.weight'] = {
    ...word,
    shape: [rows, word.shape[1]],
    data: Float32Array.from({ length: rows * word.shape[1] }, (_, i) => word.data[i % word.data.length]),
  };
  rmSync(join(folder, 'model.safetensors'));
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, vocab_size: rows }));
  return folder;
}

const hint = /^the embeddings stay as large as they are in compressed-tensors; a GGUF file .* q8_0 or q4_k_m/;

test('a file that stays large because of its embeddings says which format shrinks them', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, withRows(t, 4000));
  const plan = await quantizer.plan(source, 'int4_wo_per_channel');
  assert.ok(plan.totals.bytesAfter > plan.totals.bytesBefore / 2);
  const low = plan.diagnostics.find(({ code }) => code === 'low-coverage');
  assert.match(low.hint, hint);
  // What is advised is smaller.
  assert.ok((await quantizer.plan(source, 'q8_0')).totals.bytesAfter < plan.totals.bytesAfter);
});

test('so does one of which more than half is quantized', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = withRows(t, 350);
  const source = await modelFor(t, quantizer, folder);
  const plan = await quantizer.plan(source, 'int8');
  const { coverage, bytesAfter, bytesBefore } = plan.totals;
  assert.ok(coverage.quantizedParameters > coverage.parameters / 2, JSON.stringify(coverage));
  assert.ok(bytesAfter > bytesBefore / 2);
  const said = plan.diagnostics.find(({ code }) => code === 'embeddings-large');
  assert.equal(said.where, 'embeddings.word_embeddings.weight');
  assert.match(
    said.message,
    /^\d\d\.\d % of the file are embeddings, so it still has \d\d\.\d % of the model's bytes$/,
  );
  assert.match(said.hint, hint);
  const smaller = await quantizer.plan(source, 'q8_0');
  assert.ok(smaller.totals.bytesAfter < bytesAfter);
  for (const quiet of [smaller, await quantizer.plan(await modelFor(t, quantizer, folderOf('bert')), 'int8')])
    assert.ok(!quiet.diagnostics.some(({ code }) => code === 'embeddings-large'));
});

test('the reason for embeddings that are left advises only what the format can hold', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, folderOf('bert'));
  const reasonIn = async (format) =>
    (await quantizer.plan(source, 'int8', { format })).tensors.find(({ layerType }) => layerType === 'Embedding').reason
      .text;
  for (const format of ['compressed-tensors', 'quark'])
    assert.equal(await reasonIn(format), `embeddings stay as they are: ${format} files hold none that are quantized`);
  assert.match(await reasonIn('fake-quantized'), /^global_quant_config is not for embeddings: name the layer/);
  // The advice holds.
  const config = quantizer.presetConfig('int8');
  const named = { ...config, layer_type_quant_config: { Embedding: config.global_quant_config } };
  const embedding = (await quantizer.plan(source, named, { format: 'fake-quantized' })).tensors.find(
    ({ layerType }) => layerType === 'Embedding',
  );
  assert.equal(embedding.action, 'quantize');
});
