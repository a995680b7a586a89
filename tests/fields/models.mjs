// The models on which fields are tried, written without the code under test, and what calibration sees of them.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { graph, node, model as onnxModel, tensor as onnxTensor } from '../node/onnx/model.mjs';
import { tinyLlama } from '../node/scratch.mjs';
import { safetensors } from '../node/written_model.mjs';

/** Values with a few large ones and other sizes in each row, so that every choice of a range shows. */
function values(count, seed, columns = 1) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return Float32Array.from(
    { length: count },
    (_, i) => (next() - 0.45) * (1 + 40 * next() ** 16) * (1 + (Math.floor(i / columns) % 5)),
  );
}

const tensor = (seed, ...shape) => {
  const count = shape.reduce((product, length) => product * length, 1);
  return { dtype: 'F32', shape, data: values(count, seed, count / shape[0]) };
};

/** Halves of the steps of a grid, as float32 has them: what is rounded, and when a zero point is added, shows. */
const halves = (step, lowest, count, rows) => ({
  dtype: 'F32',
  shape: [rows, count / rows],
  data: Float32Array.from({ length: count }, (_, i) => (lowest + i / 2) * step),
});

/** The same values, all of one sign. */
const ofSign = (sign, { data, ...rest }) => ({ ...rest, data: data.map((value) => sign * Math.abs(value)) });

const layers = {
  'a.weight': tensor(1, 32, 64),
  'a.bias': tensor(2, 32),
  'b.weight': tensor(3, 64, 32),
  'c.even.weight': halves(0.5, -3, 512, 16),
  'c.tenth.weight': halves(0.1, -127.5, 512, 16),
  'c.positive.weight': ofSign(1, tensor(11, 16, 32)),
  'c.negative.weight': ofSign(-1, tensor(12, 16, 32)),
  'b.bias': tensor(4, 64),
  'conv.weight': tensor(5, 16, 4, 3, 3),
  'norm.weight': tensor(6, 64),
  'norm.bias': tensor(7, 64),
  'embed_tokens.weight': tensor(8, 24, 64),
  'lm_head.weight': tensor(9, 24, 64),
};

const experts = [0, 1].map((expert) => `model.layers.0.mlp.experts.${expert}.up_proj`);

const infinite = { ...tensor(10, 8, 32) };
infinite.data[5] = Infinity;

const configOfTransformer = {
  architectures: ['Qwen2ForCausalLM'],
  model_type: 'qwen2',
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 2,
  vocab_size: 48,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-6,
  rope_theta: 10000,
  tie_word_embeddings: false,
  torch_dtype: 'float32',
  hidden_act: 'silu',
};

function transformer() {
  const tensors = { 'model.embed_tokens.weight': tensor(20, 48, 64), 'lm_head.weight': tensor(21, 48, 64) };
  tensors['model.norm.weight'] = tensor(22, 64);
  for (const layer of [0, 1]) {
    const at = `model.layers.${layer}`;
    let seed = 30 + 20 * layer;
    for (const name of ['q_proj', 'k_proj', 'v_proj']) {
      tensors[`${at}.self_attn.${name}.weight`] = tensor(seed++, 64, 64);
      // Large, so that their part in an equalization shows.
      const bias = tensor(seed++, 64);
      tensors[`${at}.self_attn.${name}.bias`] = { ...bias, data: bias.data.map((value) => 500 * value) };
    }
    tensors[`${at}.self_attn.o_proj.weight`] = tensor(seed++, 64, 64);
    tensors[`${at}.mlp.gate_proj.weight`] = tensor(seed++, 96, 64);
    tensors[`${at}.mlp.up_proj.weight`] = tensor(seed++, 96, 64);
    tensors[`${at}.mlp.down_proj.weight`] = tensor(seed++, 64, 96);
    tensors[`${at}.input_layernorm.weight`] = tensor(seed++, 64);
    tensors[`${at}.post_attention_layernorm.weight`] = tensor(seed++, 64);
  }
  return tensors;
}

/** Two batches each, the second with other sizes. */
const batches = (layer, features, seed) =>
  ['input', 'output'].flatMap((role, i) =>
    [1, 9].map((size, k) => ({
      layer,
      role,
      shape: [40, features[i]],
      data: values(40 * features[i], seed + 2 * i + k, features[i]).map((value) => value * size + (k === 0 ? 0 : 20)),
    })),
  );

/** Of each model with static inputs and outputs, what enters and leaves its layers. */
export const activations = {
  experts: experts.flatMap((name, i) => batches(name, [64, 16], 200 + 10 * i)),
  layers: [
    ...batches('a', [64, 32], 100),
    ...batches('b', [32, 64], 110),
    ...batches('lm_head', [64, 24], 120),
    ...batches('embed_tokens', [64, 64], 130),
    ...batches('norm', [64, 64], 140),
    ...batches('conv', [64, 64], 150),
    ...['even', 'tenth', 'positive', 'negative'].flatMap((name, i) => batches(`c.${name}`, [32, 16], 160 + 10 * i)),
  ],
};

/** Token ids for the transformer. */
export const tokens = {
  tokens: { shape: [8, 24], data: Array.from({ length: 8 * 24 }, (_, i) => (i * 7 + ((i * i) % 11)) % 48) },
};

/** A convolution and a batch norm, in ONNX, which says what follows what. */
function convolutionAndNorm() {
  const vectors = ['scale', 'B', 'mean', 'var'].map((name, i) =>
    onnxTensor(
      `bn.${name}`,
      'F32',
      [8],
      values(8, 200 + i).map((value) => Math.abs(value) + 0.5),
    ),
  );
  return onnxModel(
    graph({
      nodes: [
        node('Conv', ['x', 'conv.weight'], ['c'], { name: '/conv/Conv' }),
        node('BatchNormalization', ['c', 'bn.scale', 'bn.B', 'bn.mean', 'bn.var'], ['y'], { name: '/bn/Norm' }),
      ],
      tensors: [onnxTensor('conv.weight', 'F32', [8, 4, 3, 3], values(288, 210)), ...vectors],
      inputs: [['x', 'F32', [1, 4, 12, 12]]],
      outputs: [['y', 'F32', [1, 8, 10, 10]]],
    }),
  );
}

/** A copy of the sample model with one weight that is infinite. */
function infiniteSample(folder) {
  cpSync(tinyLlama, folder, { recursive: true });
  const file = join(folder, 'model.safetensors');
  const bytes = readFileSync(file);
  const start = 8 + Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.toString('utf8', 8, start));
  const { data_offsets: offsets } = header['model.layers.0.mlp.up_proj.weight'];
  bytes.writeFloatLE(Infinity, start + offsets[0]);
  writeFileSync(file, bytes);
  return folder;
}

/** Writes the models into a folder; opens them, and the sample model with a tokenizer. */
export async function openModels(quantizer, folder) {
  const write = (name, tensors, config) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'model.safetensors'), safetensors(tensors));
    writeFileSync(join(folder, name, 'config.json'), JSON.stringify(config));
    return quantizer.open(join(folder, name));
  };
  return {
    layers: await write('layers', layers, { model_type: 'mlp' }),
    transformer: await write('transformer', transformer(), configOfTransformer),
    experts: await write(
      'experts',
      Object.fromEntries(experts.map((name, i) => [`${name}.weight`, tensor(60 + i, 16, 64)])),
      { model_type: 'qwen3_moe' },
    ),
    infinite: await write('infinite', { 'a.weight': infinite }, { model_type: 'mlp' }),
    norm: await quantizer.open(convolutionAndNorm()),
    sample: await quantizer.open(tinyLlama),
    infiniteSample: await quantizer.open(infiniteSample(join(folder, 'infinite-sample'))),
  };
}
