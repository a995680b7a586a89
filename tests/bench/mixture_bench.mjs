// What it costs to calibrate a mixture of experts, beside a dense model of the same active weights: processor seconds of each, runs of the two
// taking turns, in one thread. Both have the same attention; a token's experts together are as wide as the dense feed-forward.
//   node tests/bench/mixture_bench.mjs [--json] [--only PIPELINE] [--runs N] [--experts N] [--tokens N]
// A row a pipeline: the least seconds of each model, their ratio, and the ratios of single turns.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bestConfig, createQuantizer } from '../../dist/node.js';
import { noise, safetensors } from '../node/written_model.mjs';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean' },
    only: { type: 'string', default: '' },
    runs: { type: 'string', default: '3' },
    experts: { type: 'string', default: '8' },
    tokens: { type: 'string', default: '16384' },
  },
});
const sizes = { vocabulary: 512, hidden: 256, inner: 256, layers: 2, heads: 4, chosen: 2 };
const length = 256;

const pipelines = {
  gptq: (config) => ({ ...config, algo_config: [{ name: 'gptq' }] }),
  best: bestConfig,
};

/** Writes a Mixtral with as many experts, or a Llama with none, into `folder`. */
function writeModel(folder, experts) {
  const { vocabulary, hidden, inner, layers, heads, chosen } = sizes;
  let seed = 1;
  const matrix = (rows, columns) => {
    const data = noise(rows * columns, ++seed).map((value) => (value ** 3 * 2) / Math.sqrt(columns));
    return { dtype: 'F32', shape: [rows, columns], data };
  };
  const norm = () => ({ dtype: 'F32', shape: [hidden], data: noise(hidden, ++seed).map((value) => 1.2 + value) });
  const tensors = {
    'model.embed_tokens.weight': matrix(vocabulary, hidden),
    'model.norm.weight': norm(),
    'lm_head.weight': matrix(vocabulary, hidden),
  };
  const addFeedForward = (name, width, [gate, down, up]) => {
    tensors[`${name}.${gate}.weight`] = matrix(width, hidden);
    tensors[`${name}.${down}.weight`] = matrix(hidden, width);
    tensors[`${name}.${up}.weight`] = matrix(width, hidden);
  };
  for (let layer = 0; layer < layers; ++layer) {
    const at = `model.layers.${layer}`;
    for (const name of ['q_proj', 'k_proj', 'v_proj', 'o_proj'])
      tensors[`${at}.self_attn.${name}.weight`] = matrix(hidden, hidden);
    tensors[`${at}.input_layernorm.weight`] = norm();
    tensors[`${at}.post_attention_layernorm.weight`] = norm();
    const moe = `${at}.block_sparse_moe`;
    if (experts > 0) tensors[`${moe}.gate.weight`] = matrix(experts, hidden);
    for (let expert = 0; expert < experts; ++expert)
      addFeedForward(`${moe}.experts.${expert}`, inner, ['w1', 'w2', 'w3']);
    if (experts === 0) addFeedForward(`${at}.mlp`, chosen * inner, ['gate_proj', 'down_proj', 'up_proj']);
  }
  const config = {
    model_type: experts > 0 ? 'mixtral' : 'llama',
    architectures: [experts > 0 ? 'MixtralForCausalLM' : 'LlamaForCausalLM'],
    vocab_size: vocabulary,
    hidden_size: hidden,
    intermediate_size: experts > 0 ? inner : chosen * inner,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: heads,
    max_position_embeddings: length,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    hidden_act: 'silu',
    tie_word_embeddings: false,
    torch_dtype: 'float32',
    ...(experts > 0 && { num_local_experts: experts, num_experts_per_tok: chosen }),
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
  return folder;
}

/** Tokens that follow each other in some ways more often than in others. */
function tokens() {
  const rows = Math.ceil(Number(options.tokens) / length);
  const data = Int32Array.from(noise(rows * length, 7), (value) => Math.floor((value + 1) * 24));
  for (let i = 1; i < data.length; ++i) data[i] = (data[i] + 5 * data[i - 1]) % sizes.vocabulary;
  return { data, shape: [rows, length] };
}

async function secondsOf(quantizer, source, config, target) {
  const model = await quantizer.open(source);
  const before = process.cpuUsage();
  await quantizer.quantizeModel(model, config, {
    target,
    format: 'fake-quantized',
    calibration: { tokens: given },
    overwrite: true,
  });
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const given = tokens();
const work = mkdtempSync(join(tmpdir(), 'mixture-bench-'));
const quantizer = await createQuantizer({ threads: 0 });
const rows = [];
try {
  const dense = writeModel(join(work, 'dense'), 0);
  const mixture = writeModel(join(work, 'mixture'), Number(options.experts));
  for (const [name, of] of Object.entries(pipelines)) {
    if (!name.includes(options.only)) continue;
    const config = { ...of(quantizer.presetConfig('int4_wo_32')), exclude: ['lm_head', '*.gate'] };
    const seconds = { dense: [], mixture: [] };
    for (let run = 0; run < Number(options.runs); ++run) {
      seconds.dense.push(await secondsOf(quantizer, dense, config, join(work, 'out')));
      seconds.mixture.push(await secondsOf(quantizer, mixture, config, join(work, 'out')));
    }
    const ratios = seconds.mixture.map((mixed, run) => mixed / seconds.dense[run]);
    const least = { dense: Math.min(...seconds.dense), mixture: Math.min(...seconds.mixture) };
    rows.push({ pipeline: name, ...least, ratio: least.mixture / least.dense, ratios });
  }
} finally {
  await quantizer[Symbol.asyncDispose]();
  rmSync(work, { recursive: true });
}
if (options.json) {
  process.stdout.write(`${JSON.stringify({ experts: Number(options.experts), tokens: given.data.length, rows })}\n`);
} else {
  for (const { pipeline, dense, mixture, ratio, ratios } of rows)
    process.stdout.write(
      `${pipeline.padEnd(6)} dense ${dense.toFixed(2)} s  mixture ${mixture.toFixed(2)} s  ratio ${ratio.toFixed(2)}  (${ratios.map((each) => each.toFixed(2)).join(' ')})\n`,
    );
}
