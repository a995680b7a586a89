// Padding and rows of different lengths in calibration, evaluation and everything else that runs on tokens: the result
// is that of the same rows without padding, to the bit.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const folderOf = (name) => join(files, 'forward', name);
const vocabulary = 40;

/** Numbers below `limit`, the same in every run. */
function randomOf(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

const randomRows = (random, lengths) => lengths.map((length) => Array.from({ length }, () => random(vocabulary)));

/** The rows in a rectangle of `width`, between `before(row)` and the rest of padding, which is no token of the model. */
function padded(rows, width, before, padding = -100) {
  const data = new Int32Array(rows.length * width).fill(padding);
  const mask = new Uint8Array(data.length);
  for (const [row, ids] of rows.entries()) {
    const at = row * width + before(row);
    data.set(ids, at);
    mask.fill(1, at, at + ids.length);
  }
  const shape = [rows.length, width];
  return { data, shape, mask: { data: mask, shape } };
}

/** A safetensors file of integers. */
function writeIntegers(path, tensors) {
  const header = {};
  let end = 0;
  for (const [name, { dtype, shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, end + data.byteLength] };
    end += data.byteLength;
  }
  const json = JSON.stringify(header);
  const text = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const parts = Object.values(tensors).map(({ data }) => new Uint8Array(data.buffer));
  writeFileSync(path, Buffer.concat([length, text, ...parts]));
}

async function quantized(quantizer, model, config, tokens, format = 'fake-quantized') {
  const out = memoryStream();
  await quantizer.quantizeModel(model, config, { target: out.stream, format, calibration: { tokens } });
  return Buffer.from(out.bytes()).toString('latin1');
}

const weight = { dtype: 'int4', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const configOf = (rest) => ({ global_quant_config: { weight }, exclude: ['lm_head'], ...rest });
const input = { dtype: 'int8', qscheme: 'per_tensor', symmetric: true };
const configs = {
  'smoothquant, awq, gptq': configOf({
    pre_quant_opt_config: [{ name: 'smoothquant', alpha: 0.5 }],
    algo_config: [{ name: 'awq' }, { name: 'gptq' }],
  }),
  autosmoothquant: configOf({ algo_config: [{ name: 'autosmoothquant' }] }),
  gptaq: configOf({ algo_config: [{ name: 'gptaq' }] }),
  qronos: configOf({ algo_config: [{ name: 'qronos' }] }),
  gpfq: configOf({ algo_config: [{ name: 'gpfq' }] }),
  biascorrection: configOf({ algo_config: [{ name: 'biascorrection' }] }),
};
// Of 8 bits: rows of 28 do not fill Quark's words of 4 bits.
const staticInputs = {
  global_quant_config: { weight: { ...weight, dtype: 'int8' }, input_tensors: input },
  exclude: ['lm_head'],
};

test('every algorithm, observer and matrix sees padded rows as it sees the same rows without padding', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, folderOf('llama'));
  const lm = quantizer.languageModel(model);
  const random = randomOf(11);
  const rows = randomRows(random, [9, 17, 1, 30, 4, 22, 2, 13]);
  const before = rows.map((ids) => random(32 - ids.length));
  const sides = {
    right: padded(rows, 32, () => 0),
    left: padded(rows, 32, (row) => 32 - rows[row].length, 258),
    both: padded(rows, 32, (row) => before[row]),
    'rows of padding': padded([[], ...rows, []], 40, () => 3),
    int64: { ...padded(rows, 31, () => 1), data: BigInt64Array.from(padded(rows, 31, () => 1).data, BigInt) },
  };
  for (const [name, config] of Object.entries(configs)) {
    const expected = await quantized(quantizer, model, config, { rows });
    const unmasked = { data: sides.right.data.map((id) => Math.max(id, 0)), shape: sides.right.shape };
    assert.notEqual(await quantized(quantizer, model, config, unmasked), expected, `${name}: padding that counts`);
    for (const [side, tokens] of Object.entries(sides))
      assert.equal(await quantized(quantizer, model, config, tokens), expected, `${name}, ${side}`);
  }
  const wide = quantizer.languageModel(await modelFor(t, quantizer, tinyLlama));
  const imatrix = async (tokens) => Buffer.from(await wide.importance({ calibration: { tokens } })).toString('latin1');
  await assert.rejects(lm.importance({ calibration: { tokens: { rows } } }), /whole blocks of 32/);
  const results = {
    'static inputs': (tokens) => quantized(quantizer, model, staticInputs, tokens, 'quark'),
    importance: imatrix,
    autoConfig: async (tokens) =>
      JSON.stringify((await lm.autoConfig({ targetBits: 6, calibration: { tokens } })).layers),
    evaluate: async (tokens) => JSON.stringify((await lm.evaluate({ tokens, bytesPerToken: 1 })).sequenceLosses),
  };
  for (const [name, result] of Object.entries(results)) {
    const expected = await result({ rows });
    for (const [side, tokens] of Object.entries(sides))
      assert.equal(await result(tokens), expected, `${name}, ${side}`);
  }
});

test('padded rows of one length give the result of the rectangle without padding', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  for (const family of ['gemma3_text', 'mistral', 'qwen3']) {
    const model = await modelFor(t, quantizer, folderOf(family));
    const rows = randomRows(randomOf(5), Array(20).fill(16));
    const rectangle = { data: rows.flat(), shape: [20, 16] };
    const left = padded(rows, 30, () => 14);
    const config = configs['smoothquant, awq, gptq'];
    assert.equal(await quantized(quantizer, model, config, left), await quantized(quantizer, model, config, rectangle));
  }
});

test('the loss of a sequence does not depend on the other rows of its batch or on the number of workers', async (t) => {
  const rows = randomRows(randomOf(3), [30, 2, 1, 17, 9, 25, 25, 3, 32, 6]);
  const losses = [];
  for (const threads of [0, 1, 3]) {
    const quantizer = await quantizerFor(t, { threads });
    for (const family of ['llama', 'gemma2']) {
      const lm = quantizer.languageModel(await modelFor(t, quantizer, folderOf(family)));
      const found = await lm.evaluate({ tokens: { rows }, bytesPerToken: 2 });
      assert.equal(found.sequences, rows.length);
      assert.equal(found.length, 32);
      assert.equal(found.tokens, rows.flat().length - rows.length);
      losses.push(found.sequenceLosses.join());
      for (const [row, ids] of rows.entries()) {
        if (ids.length === 1) {
          assert.equal(found.sequenceLosses[row], 0);
          continue;
        }
        const alone = await lm.evaluate({ tokens: { data: ids, shape: [ids.length] }, bytesPerToken: 2 });
        assert.equal(alone.sequenceLosses[0], found.sequenceLosses[row], `${family}, row ${row}`);
      }
    }
  }
  assert.equal(new Set(losses).size, 2);
});

test("the command line uses a file's mask, in every integer dtype, and reports it", async (t) => {
  const folder = scratchFolder(t);
  const rows = randomRows(randomOf(8), [12, 30, 5]);
  const { data, shape, mask } = padded(rows, 32, (row) => 32 - rows[row].length);
  const path = join(folder, 'tokens.safetensors');
  const alone = join(folder, 'alone.safetensors');
  const losses = [];
  for (const ids of rows) {
    writeIntegers(alone, { input_ids: { dtype: 'I32', shape: [1, ids.length], data: Int32Array.from(ids) } });
    const { document } = await cliJson(['evaluate', folderOf('llama'), '--tokens', alone, '--bytes-per-token', '1']);
    losses.push(...document.sequenceLosses);
  }
  const masks = {
    I64: BigInt64Array.from(mask.data, BigInt),
    I32: Int32Array.from(mask.data),
    U8: mask.data,
    BOOL: mask.data,
  };
  for (const [dtype, values] of Object.entries(masks)) {
    writeIntegers(path, { ids: { dtype: 'I32', shape, data }, attention_mask: { dtype, shape, data: values } });
    const { document } = await cliJson(['evaluate', folderOf('llama'), '--tokens', path, '--bytes-per-token', '1']);
    assert.deepEqual(document.sequenceLosses, losses, dtype);
  }
  const { stdout } = await cli(['evaluate', folderOf('llama'), '--tokens', path, '--bytes-per-token', '1']);
  assert.match(stdout, /44 predictions in 3 sequences of up to 30 tokens/);
});

test('values that are not a mask are refused, with their place', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, folderOf('llama'));
  const data = new Int32Array(12).fill(3);
  const shape = [3, 4];
  const refused = (mask, pattern) =>
    assert.rejects(quantized(quantizer, model, configs.qronos, { data, shape, mask }), (error) => {
      assert.equal(error.code, 'argument-invalid');
      assert.match(error.message, pattern);
      return true;
    });
  const ones = Array(12).fill(1);
  await refused({ data: ones, shape: [4, 3] }, /attention_mask.* shape \[4, 3\], but the tokens have shape \[3, 4\]/);
  await refused({ data: ones.slice(1), shape }, /attention_mask.* has 11 values/);
  await refused({ data: ones, shape: [12] }, /shape \[12\]/);
  await refused({ data: ones.with(6, 2), shape }, /attention_mask.* is 2 at row 1, position 2/);
  await refused({ data: ones.with(6, -10000), shape }, /is -10000 at row 1/);
  await refused({ data: ones.with(9, 0), shape }, /padding between tokens of row 2, at position 1/);
  await refused({ data: ones.map(() => 0), shape }, /every row is empty or padding/);
  await refused({ data: ones.map((_, i) => (i % 4 === 2 ? 1 : 0)), shape }, /one token predict nothing/);
  const wrong = {
    rows: [
      [1, 2],
      [3, 40],
    ],
  };
  await assert.rejects(quantized(quantizer, model, configs.qronos, wrong), /token 40 at position 1 of sequence 1/);
  await assert.rejects(quantized(quantizer, model, configs.qronos, { rows: [1, 2] }), /not arrays of token ids/);

  const path = join(scratchFolder(t), 'tokens.safetensors');
  const input_ids = { dtype: 'I32', shape, data };
  const floats = { dtype: 'F32', shape, data: new Float32Array(12).fill(1) };
  writeIntegers(path, { input_ids, attention_mask: floats });
  const file = await modelFor(t, quantizer, path);
  await assert.rejects(quantized(quantizer, model, configs.qronos, file), {
    code: 'dtype-unsupported',
    message: /attention_mask.*holds F32; masks are I64, I32/,
  });
});
