// GGUF models by the built-in forward pass: the same numbers as the folders that they were made from, by their metadata
// alone and by a source's config.json.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors, writeFloats } from '../../interop/safetensors_file.mjs';
import { cliJson } from '../cli/process.mjs';
import { files, memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const evalTokens = join(files, 'tiny-llama-reference/eval_tokens.safetensors');

function tokensOf(sequences, length = 256) {
  const { data } = readTensors(evalTokens).get('input_ids');
  return { data: Int32Array.from(data.subarray(0, sequences * length)), shape: [sequences, length] };
}

const near = (actual, expected, tolerance, message) =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${message}: ${actual}, expected ${expected}`);

async function gguf(t, quantizer, source, recipe) {
  const { stream, bytes } = memoryStream();
  await quantizer.quantizeModel(source, { dialect: 'gguf', recipe }, { target: stream, format: 'gguf' });
  return { bytes: bytes(), model: await modelFor(t, quantizer, bytes()) };
}

/** What transformers calls a tensor of llama.cpp's. */
const plainNames = {
  'token_embd.weight': 'model.embed_tokens.weight',
  'output_norm.weight': 'model.norm.weight',
  'output.weight': 'lm_head.weight',
};
const blockNames = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};

/** Rows of each head 0, d/2, 1, d/2 + 1 ... to 0, 1, 2 ... */
function sorted(data, [rows, columns], headRows) {
  const out = new Float32Array(data.length);
  for (let row = 0; row < rows; ++row) {
    const inHead = row % headRows;
    const to = row - inHead + Math.floor(inHead / 2) + (inHead % 2) * (headRows / 2);
    out.set(data.subarray(row * columns, (row + 1) * columns), to * columns);
  }
  return out;
}

/** tiny-llama's folder with the values of an F32 GGUF file. */
function folderOf(t, { bytes, model }) {
  const folder = join(scratchFolder(t), 'fake');
  mkdirSync(folder);
  for (const name of ['config.json', 'tokenizer.json']) cpSync(join(tinyLlama, name), join(folder, name));
  const config = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
  const headRows = config.head_dim ?? config.hidden_size / config.num_attention_heads;
  const tensors = new Map();
  for (const { name, dtype, shape, begin, end } of model.tensors) {
    assert.equal(dtype, 'F32', name);
    const [, layer, block] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
    const values = new Float32Array(bytes.slice(begin, end).buffer);
    const data = block === 'attn_q' || block === 'attn_k' ? sorted(values, shape, headRows) : values;
    tensors.set(plainNames[name] ?? `model.layers.${layer}.${blockNames[block]}.weight`, { shape, data });
  }
  writeFloats(join(folder, 'model.safetensors'), tensors);
  return folder;
}

test('F32 gives every loss bit for bit, F16 nearly so; metadata replace config.json', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf(4);
  const expected = await quantizer.languageModel(source).evaluate({ tokens });
  const { model } = await gguf(t, quantizer, source, 'f32');
  const found = await quantizer.languageModel(model, { source }).evaluate({ tokens });
  assert.deepEqual(found.sequenceLosses, expected.sequenceLosses);
  assert.equal(found.bitsPerByte, expected.bitsPerByte);
  const alone = await quantizer.languageModel(model).evaluate({ tokens });
  near(alone.bitsPerToken, expected.bitsPerToken, 1e-6, 'by its metadata'); // their epsilon is a float32
  near(alone.bitsPerByte, expected.bitsPerByte, 1e-6, 'by the tokenizer in the file');
  const half = await gguf(t, quantizer, source, 'f16');
  near(
    (await quantizer.languageModel(half.model, { source }).evaluate({ tokens })).bitsPerByte,
    expected.bitsPerByte,
    1e-3,
    'F16',
  );
});

test('the folder named as the source has priority over files next to the GGUF file', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf(1);
  const { bytes } = await gguf(t, quantizer, source, 'q8_0');
  const folder = scratchFolder(t);
  writeFileSync(join(folder, 'model.gguf'), bytes);
  writeFileSync(join(folder, 'config.json'), '{"global_quant_config": {}}');
  const model = await modelFor(t, quantizer, join(folder, 'model.gguf'));
  const found = await quantizer.languageModel(model, { source }).evaluate({ tokens });
  assert.ok(found.bitsPerByte > 1);
  near(
    (await quantizer.languageModel(model).evaluate({ tokens })).bitsPerToken,
    found.bitsPerToken,
    1e-6,
    'by its metadata',
  );
});

test('Q8_0 and Q4_K give the same losses as the same weights in a folder', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const tokens = tokensOf(2);
  const float = await quantizer.languageModel(source).evaluate({ tokens });
  for (const recipe of ['q8_0', 'q4_k_m']) {
    const { model } = await gguf(t, quantizer, source, recipe);
    const folder = folderOf(t, await gguf(t, quantizer, model, 'f32'));
    const expected = await quantizer.languageModel(await modelFor(t, quantizer, folder)).evaluate({ tokens });
    const found = await quantizer.languageModel(model, { source }).evaluate({ tokens });
    near(found.bitsPerByte, expected.bitsPerByte, 1e-6, recipe);
    assert.notEqual(found.bitsPerByte, float.bitsPerByte);
    near(found.bitsPerByte, float.bitsPerByte, 0.1, `${recipe} is still the model`);
  }
});

/** What GGUF has no word for, as llama.cpp takes it; null: as it is. */
const asLlamaCpp = {
  llama: { rope_scaling: null },
  llama_linear: { hidden_act: 'silu' },
  mistral: { sliding_window: null },
  qwen2: { use_sliding_window: false },
  qwen3: null,
  gemma: null,
  gemma2: { query_pre_attn_scalar: 12 },
  gemma3_text: { query_pre_attn_scalar: 12, layer_types: null },
};

test('biases of heads have the order of their rows, as llama.cpp converts them', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'llama');
  cpSync(join(files, 'forward/llama'), folder, { recursive: true });
  for (const name of ['tokenizer.json', 'tokenizer_config.json']) cpSync(join(tinyLlama, name), join(folder, name));
  const { model, bytes } = await gguf(t, quantizer, await modelFor(t, quantizer, folder), 'f16');
  const weights = readTensors(join(folder, 'model.safetensors'));
  for (const [name, from] of Object.entries({ attn_q: 'q_proj', attn_k: 'k_proj', attn_v: 'v_proj' })) {
    const { begin, end } = model.tensors.find((tensor) => tensor.name === `blk.1.${name}.bias`);
    const written = new Float32Array(bytes.slice(begin, end).buffer);
    const { data } = weights.get(`model.layers.1.self_attn.${from}.bias`);
    const headRows = 6;
    const found = name === 'attn_v' ? written : sorted(written, [written.length, 1], headRows);
    assert.deepEqual(found, Float32Array.from(data), name);
    if (name !== 'attn_v') assert.notDeepEqual(written, Float32Array.from(data), name);
  }
});

test('every family: heads, biases, norms, caps, windows and rotations, by config.json and by metadata', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [family, change] of Object.entries(asLlamaCpp)) {
    const folder = join(scratchFolder(t), family);
    cpSync(join(files, 'forward', family), folder, { recursive: true });
    for (const name of ['tokenizer.json', 'tokenizer_config.json']) cpSync(join(tinyLlama, name), join(folder, name));
    const tokens = await modelFor(t, quantizer, join(folder, 'expected.safetensors'));
    const losses = async (source, given) => {
      const { model } = await gguf(t, quantizer, source, 'f32');
      const expected = await quantizer.languageModel(source).evaluate({ tokens });
      const found = await quantizer.languageModel(model, given).evaluate({ tokens });
      return [found.bitsPerToken, expected.bitsPerToken];
    };
    const source = await modelFor(t, quantizer, folder);
    near(...(await losses(source, { source })), 1e-6, `${family}, its config.json`);
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...change }));
    near(...(await losses(await modelFor(t, quantizer, folder), {})), 1e-6, `${family}, its metadata`);
  }
});

test('a GGUF model continues a text as its folder does; a budget for another format is refused', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const source = await modelFor(t, quantizer, tinyLlama);
  const tokens = [...tokensOf(1).data.subarray(0, 12)];
  const expected = await quantizer.languageModel(source).generate({ tokens, count: 12 });
  const { model } = await gguf(t, quantizer, source, 'f32');
  assert.deepEqual((await quantizer.languageModel(model).generate({ tokens, count: 12 })).tokens, expected.tokens);
  await assert.rejects(
    quantizer.languageModel(model).autoConfig({ targetBits: 4, calibration: { tokens: tokensOf(2) } }),
    ({ code, message }) => code === 'format-unsupported' && /only be written as gguf/.test(message),
  );
});

test('llama 3 keeps its rotation in a tensor: the source is needed, and the message says so', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'llama3');
  cpSync(tinyLlama, folder, { recursive: true });
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  const rope_scaling = {
    rope_type: 'llama3',
    factor: 4,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 64,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, rope_scaling, rope_parameters: null }));
  const source = await modelFor(t, quantizer, folder);
  const tokens = tokensOf(1);
  const expected = await quantizer.languageModel(source).evaluate({ tokens });
  const { model } = await gguf(t, quantizer, source, 'f32');
  await assert.rejects(quantizer.languageModel(model).evaluate({ tokens }), {
    code: 'not-implemented',
    where: 'rope_freqs.weight',
    message: /source/,
  });
  const found = await quantizer.languageModel(model, { source }).evaluate({ tokens });
  assert.deepEqual(found.sequenceLosses, expected.sequenceLosses);
});

test('evaluate --source: bits per byte of a GGUF file on text', async (t) => {
  const quantizer = await quantizerFor(t);
  const source = await modelFor(t, quantizer, tinyLlama);
  const folder = scratchFolder(t);
  const path = join(folder, 'model.gguf');
  writeFileSync(path, (await gguf(t, quantizer, source, 'f16')).bytes);
  const text = join(folder, 'text.txt');
  writeFileSync(text, 'And the evening and the morning were the first day. '.repeat(20));
  const given = ['--text', text, '--threads', '0'];
  const float = await cliJson(['evaluate', tinyLlama, ...given]);
  const half = await cliJson(['evaluate', path, '--source', tinyLlama, ...given]);
  assert.equal(half.code, 0);
  near(half.document.bitsPerByte, float.document.bitsPerByte, 1e-3, 'F16');
  const alone = await cliJson(['evaluate', path, ...given]);
  near(alone.document.bitsPerByte, half.document.bitsPerByte, 1e-6, 'by the tokenizer in the file');
});
