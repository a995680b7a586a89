// Small models of four kinds that transformers.js runs, with what their files are called and what goes into them: an encoder
// of words (MiniLM's inputs and output), an image classifier (ViT's), a pair of encoder and decoder of speech (Whisper's) and a
// decoder of words. Their graphs have the operators of such models; all values are noise.
import { graph, model, node, noise, tensor } from '../node/onnx/model.mjs';

const width = 64;
const words = 288;

/** Builds a graph step by step; weights are named as exporters name them. */
class Graph {
  nodes = [];
  tensors = [];
  #seed = 1;

  add(type, inputs, output, attributes = {}) {
    this.nodes.push(node(type, inputs, [output], { name: `/${output}/${type}`, ...attributes }));
    return output;
  }
  weight(name, shape, size = 0.3) {
    const count = shape.reduce((a, b) => a * b, 1);
    this.tensors.push(
      tensor(
        name,
        'F32',
        shape,
        noise(count, this.#seed++).map((x) => x * size),
      ),
    );
    return name;
  }
  list(name, values) {
    this.tensors.push(tensor(name, 'I64', [values.length], BigInt64Array.from(values, BigInt)));
    return name;
  }
  /** [in, out], as MatMul has it, and a bias. */
  linear(input, name, inputs = width, outputs = width) {
    const product = this.add('MatMul', [input, this.weight(`onnx::${name}`, [inputs, outputs])], `${name}.product`);
    return this.add('Add', [product, this.weight(`${name}.bias`, [outputs], 0.1)], name);
  }
  norm(input, name) {
    const scale = this.weight(`${name}.scale`, [width], 1);
    return this.add('LayerNormalization', [input, scale], name);
  }
  /** One head of attention of `from` on `to`, and a feed-forward layer, each with a residual. */
  block(from, to, name) {
    const query = this.linear(this.norm(from, `${name}.norm1`), `${name}.q_proj`);
    const key = this.add('Transpose', [this.linear(to, `${name}.k_proj`)], `${name}.keys`, { perm: [0, 2, 1] });
    const scores = this.add('Softmax', [this.add('MatMul', [query, key], `${name}.scores`)], `${name}.weights`, {
      axis: -1,
    });
    const mixed = this.add('MatMul', [scores, this.linear(to, `${name}.v_proj`)], `${name}.mixed`);
    const attended = this.add('Add', [from, this.linear(mixed, `${name}.out_proj`)], `${name}.attended`);
    const up = this.add(
      'Relu',
      [this.linear(this.norm(attended, `${name}.norm2`), `${name}.up`, width, 96)],
      `${name}.relu`,
    );
    return this.add('Add', [attended, this.linear(up, `${name}.down`, 96, width)], `${name}.out`);
  }
  embed(ids, name) {
    return this.add('Gather', [this.weight(`${name}.weight`, [words, width], 2), ids], name);
  }
  bytes(inputs, outputs) {
    return model(graph({ nodes: this.nodes, tensors: this.tensors, inputs, outputs }));
  }
}

const text = ['batch', 'sequence'];

function miniLm() {
  const g = new Graph();
  // The mask and the types of the words are added, so that both are read.
  const mask = g.add('Cast', ['attention_mask'], 'mask', { to: 1 });
  g.list('last', [-1]);
  const wide = g.add('Unsqueeze', [mask, 'last'], 'wide');
  const types = g.add('Gather', [g.weight('types.weight', [2, width], 0.2), 'token_type_ids'], 'types');
  const embedded = g.add('Add', [g.embed('input_ids', 'embeddings'), types], 'embedded');
  const masked = g.add('Mul', [embedded, wide], 'masked');
  g.add('Identity', [g.block(masked, masked, 'layer.0')], 'last_hidden_state');
  const inputs = ['input_ids', 'attention_mask', 'token_type_ids'].map((name) => [name, 'I64', text]);
  return g.bytes(inputs, [['last_hidden_state', 'F32', [...text, width]]]);
}

function vit() {
  const g = new Graph();
  const patches = g.add(
    'Conv',
    ['pixel_values', g.weight('patches.weight', [width, 3, 8, 8]), g.weight('patches.bias', [width])],
    'patches',
    { strides: [8, 8], kernel_shape: [8, 8], dilations: [1, 1], pads: [0, 0, 0, 0], group: 1 },
  );
  const rows = g.add('Reshape', [patches, g.list('rows_shape', [0, width, -1])], 'rows');
  const tokens = g.add('Transpose', [rows], 'tokens', { perm: [0, 2, 1] });
  const out = g.block(tokens, tokens, 'layer.0');
  const mean = g.add('ReduceMean', [out], 'pooled', { axes: [1], keepdims: 0 });
  g.add('Identity', [g.linear(mean, 'classifier', width, 10)], 'logits');
  return g.bytes([['pixel_values', 'F32', ['batch', 3, 'height', 'width']]], [['logits', 'F32', ['batch', 10]]]);
}

function speechEncoder() {
  const g = new Graph();
  const sounds = g.add(
    'Conv',
    ['input_features', g.weight('conv1.weight', [width, 80, 3], 0.1), g.weight('conv1.bias', [width])],
    'sounds',
    { strides: [2], kernel_shape: [3], dilations: [1], pads: [1, 1], group: 1 },
  );
  const frames = g.add('Transpose', [sounds], 'frames', { perm: [0, 2, 1] });
  g.add('Identity', [g.block(frames, frames, 'layer.0')], 'last_hidden_state');
  const inputs = [['input_features', 'F32', ['batch', 80, 'time']]];
  return g.bytes(inputs, [['last_hidden_state', 'F32', ['batch', 'frames', width]]]);
}

/** `isSpeech`: attends to an encoder's output. The head is a matrix of its own. */
function decoder(isSpeech) {
  const g = new Graph();
  let hidden = g.embed('input_ids', 'model.embed_tokens');
  hidden = g.block(hidden, isSpeech ? 'encoder_hidden_states' : hidden, 'model.layers.0');
  g.add('MatMul', [hidden, g.weight('onnx::lm_head', [width, words])], 'logits');
  const inputs = [['input_ids', 'I64', text]];
  if (isSpeech) inputs.push(['encoder_hidden_states', 'F32', ['batch', 'frames', width]]);
  return g.bytes(inputs, [['logits', 'F32', [...text, words]]]);
}

const ids = (...list) => ({ type: 'int64', data: list, dims: [1, list.length] });
const floats = (shape, seed) => ({
  type: 'float32',
  data: Array.from(
    noise(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
  ),
  dims: shape,
});
const sizes = { hidden_size: width, vocab_size: words, num_attention_heads: 1, num_hidden_layers: 1 };

/** {folder, type, config, files: {name: bytes}, feeds, output}: what AutoModel-like class `type` loads, and its output. */
export const kinds = () => [
  {
    folder: 'minilm',
    type: 'AutoModel',
    config: { model_type: 'bert', ...sizes },
    files: { model: miniLm() },
    feeds: { input_ids: ids(1, 40, 7, 250, 9), attention_mask: ids(1, 1, 1, 1, 0), token_type_ids: ids(0, 0, 1, 1, 0) },
    output: 'last_hidden_state',
  },
  {
    folder: 'vit',
    type: 'AutoModelForImageClassification',
    config: { model_type: 'vit', architectures: ['ViTForImageClassification'], ...sizes },
    files: { model: vit() },
    feeds: { pixel_values: floats([1, 3, 32, 32], 70) },
    output: 'logits',
  },
  {
    folder: 'whisper',
    type: 'WhisperForConditionalGeneration',
    config: {
      model_type: 'whisper',
      architectures: ['WhisperForConditionalGeneration'],
      is_encoder_decoder: true,
      ...sizes,
      d_model: width,
      decoder_layers: 1,
      encoder_layers: 1,
      decoder_attention_heads: 1,
      encoder_attention_heads: 1,
      num_mel_bins: 80,
    },
    files: { encoder_model: speechEncoder(), decoder_model_merged: decoder(true) },
    feeds: { input_features: floats([1, 80, 40], 71), decoder_input_ids: ids(1, 40, 7) },
    output: 'logits',
  },
  {
    folder: 'decoder',
    type: 'AutoModelForCausalLM',
    config: {
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      ...sizes,
      num_key_value_heads: 1,
      head_dim: 64,
    },
    files: { model: decoder(false) },
    feeds: { input_ids: ids(1, 40, 7, 250, 9, 33) },
    output: 'logits',
  },
];
