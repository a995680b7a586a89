// Small checkpoints with the names and shapes of real families: joined, tied and expert layers, rows of lengths that groups do not divide.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { safetensors } from '../../node/written_model.mjs';
import { root } from '../../setup/command.mjs';

const tokenizerFiles = ['tokenizer.json', 'tokenizer_config.json'].map((name) =>
  join(root, 'tests/files/tiny-llama', name),
);
/** Of the tokenizer of tiny-llama. */
const vocabulary = 288;

const linear = (rows, columns) => ({ shape: [rows, columns], isLinear: true });
const vector = (size) => ({ shape: [size], isNorm: true });
const bias = (size) => ({ shape: [size] });
const table = (rows, columns) => ({ shape: [rows, columns] });

function attention(prefix, { hidden, heads, groups, head }, withBias) {
  const sizes = { q_proj: heads * head, k_proj: groups * head, v_proj: groups * head };
  const tensors = Object.entries(sizes).flatMap(([name, rows]) => [
    [`${prefix}.${name}.weight`, linear(rows, hidden)],
    ...(withBias ? [[`${prefix}.${name}.bias`, bias(rows)]] : []),
  ]);
  return [...tensors, [`${prefix}.o_proj.weight`, linear(hidden, heads * head)]];
}

const mlp = (prefix, { hidden, inner }, [gate, up, down] = ['gate_proj', 'up_proj', 'down_proj']) => [
  [`${prefix}.${gate}.weight`, linear(inner, hidden)],
  [`${prefix}.${up}.weight`, linear(inner, hidden)],
  [`${prefix}.${down}.weight`, linear(hidden, inner)],
];

const experts = (prefix, sizes, names) =>
  [0, 1, 2, 3].flatMap((index) => mlp(`${prefix}.experts.${index}`, sizes, names));

/**
 * Matrices of four experts in one tensor each, [experts, outputs, inputs] or, `isInputMajor`, [experts, inputs, outputs]; `names`: what a file with
 * single experts calls gate, up and down, below `singles`.
 */
const stackedExperts = ({ hidden, inner }, gateUp, down, singles, names, isInputMajor = false) =>
  [
    [gateUp, 2 * inner, hidden, names.slice(0, 2)],
    [down, hidden, inner, names.slice(2)],
  ].map(([name, outputs, inputs, parts]) => [
    name,
    {
      shape: [4, ...(isInputMajor ? [inputs, outputs] : [outputs, inputs])],
      stack: { singles: `${singles}.experts`, parts, isInputMajor },
    },
  ]);

const qwen3Attention = (prefix, s) => [
  ...attention(`${prefix}.self_attn`, s),
  [`${prefix}.self_attn.q_norm.weight`, vector(s.head)],
  [`${prefix}.self_attn.k_norm.weight`, vector(s.head)],
];
const qwen3Keys = {
  num_experts: 4,
  num_experts_per_tok: 2,
  decoder_sparse_step: 1,
  norm_topk_prob: true,
  mlp_only_layers: [],
};
const singleNames = ['gate_proj', 'up_proj', 'down_proj'];

/**
 * name: [class, tensors of a block besides its norms, keys of config.json, whether algorithms that need tokens can run it, and the model type if
 * the name is another].
 */
const families = {
  llama: ['LlamaForCausalLM', (p, s) => [...attention(`${p}.self_attn`, s), ...mlp(`${p}.mlp`, s)], {}, true],
  mistral: ['MistralForCausalLM', (p, s) => [...attention(`${p}.self_attn`, s), ...mlp(`${p}.mlp`, s)], {}, true],
  qwen2: ['Qwen2ForCausalLM', (p, s) => [...attention(`${p}.self_attn`, s, true), ...mlp(`${p}.mlp`, s)], {}, true],
  phi3: [
    'Phi3ForCausalLM',
    (p, s) => [
      [`${p}.self_attn.qkv_proj.weight`, linear((s.heads + 2 * s.groups) * s.head, s.hidden)],
      [`${p}.self_attn.o_proj.weight`, linear(s.hidden, s.heads * s.head)],
      [`${p}.mlp.gate_up_proj.weight`, linear(2 * s.inner, s.hidden)],
      [`${p}.mlp.down_proj.weight`, linear(s.hidden, s.inner)],
    ],
    {},
    false,
  ],
  mixtral: [
    'MixtralForCausalLM',
    (p, s) => [
      ...attention(`${p}.self_attn`, s),
      [`${p}.block_sparse_moe.gate.weight`, table(4, s.hidden)],
      ...experts(`${p}.block_sparse_moe`, s, ['w1', 'w3', 'w2']),
    ],
    { num_local_experts: 4, num_experts_per_tok: 2 },
    false,
  ],
  qwen3_moe: [
    'Qwen3MoeForCausalLM',
    (p, s) => [...qwen3Attention(p, s), [`${p}.mlp.gate.weight`, table(4, s.hidden)], ...experts(`${p}.mlp`, s)],
    qwen3Keys,
    false,
  ],
  'qwen3_moe with stacked experts': [
    'Qwen3MoeForCausalLM',
    (p, s) => [
      ...qwen3Attention(p, s),
      [`${p}.mlp.gate.weight`, table(4, s.hidden)],
      ...stackedExperts(s, `${p}.mlp.experts.gate_up_proj`, `${p}.mlp.experts.down_proj`, `${p}.mlp`, singleNames),
    ],
    qwen3Keys,
    false,
    'qwen3_moe',
  ],
  granitemoe: [
    'GraniteMoeForCausalLM',
    (p, s) => {
      const mixture = `${p}.block_sparse_moe`;
      return [
        ...attention(`${p}.self_attn`, s),
        [`${mixture}.router.layer.weight`, table(4, s.hidden)],
        ...stackedExperts(s, `${mixture}.input_linear.weight`, `${mixture}.output_linear.weight`, mixture, [
          'w1',
          'w3',
          'w2',
        ]),
      ];
    },
    { num_local_experts: 4, num_experts_per_tok: 2 },
    false,
  ],
  llama4_text: [
    'Llama4ForCausalLM',
    (p, s) => {
      const mixture = `${p}.feed_forward`;
      return [
        ...attention(`${p}.self_attn`, s),
        [`${mixture}.router.weight`, table(4, s.hidden)],
        ...mlp(`${mixture}.shared_expert`, s),
        ...stackedExperts(
          s,
          `${mixture}.experts.gate_up_proj`,
          `${mixture}.experts.down_proj`,
          mixture,
          singleNames,
          true,
        ),
      ];
    },
    { num_local_experts: 4, num_experts_per_tok: 1, interleave_moe_layer_step: 1, use_qk_norm: false },
    false,
  ],
  'of no family': ['', (p, s) => [...attention(`${p}.attn`, s), ...mlp(`${p}.ffn`, s)], {}, false],
};
export const familyNames = Object.keys(families);

/** `isLarge`: weights of several tiles, which workers share. */
export function randomSizes(random, isGguf, isLarge = false) {
  if (isLarge)
    return { head: 16, groups: 2, heads: 4, hidden: random.pick([64, 96]), inner: random.pick([4096, 4640]) };
  const head = random.pick(isGguf ? [16, 32] : [8, 16, 10, 32]);
  const groups = random.pick([1, 2]);
  const heads = groups * random.pick([1, 2, 3]);
  const isEven = random.chance(0.5);
  const hidden = random.pick(isGguf || isEven ? [32, 64, 96, 256] : [32, 40, 48, 64, 72, 90, 96, 100, 128, 136]);
  if (!isGguf && random.chance(0.06)) return { head, groups, heads, hidden, inner: random.pick([1, 2, 3, 7]) };
  const inner = random.pick(isGguf || isEven ? [32, 64, 160, 256, 288] : [48, 56, 64, 80, 90, 96, 100, 128, 130, 180]);
  return { head, groups, heads, hidden, inner };
}

/** What values are like: tensors of one sign, with outliers, with rows of zeros, very small ones. */
export const kinds = ['normal', 'normal', 'outliers', 'zero rows', 'positive', 'small'];

/** Files that belong to a model and that an output folder takes along as they are. */
const companions = {
  'generation_config.json': '{"max_length": 17, "eos_token_id": 2}\n',
  'chat_template.jinja': '{% for message in messages %}{{ message.content }}\r\n{% endfor %}',
  'custom/merges.txt': '#version: 0.2\na b\n',
  LICENSE: 'Free of charge.\n',
};

function writeCompanions(folder) {
  for (const file of tokenizerFiles) cpSync(file, join(folder, file.split('/').at(-1)));
  mkdirSync(join(folder, 'custom'));
  for (const [name, text] of Object.entries(companions)) writeFileSync(join(folder, name), text);
}

function values(random, { shape, isNorm }, kind) {
  const count = shape.reduce((product, size) => product * size, 1);
  const columns = shape.at(-1);
  const scale = isNorm ? 0.1 : kind === 'small' ? 1e-4 : 1 / Math.sqrt(columns);
  return Float32Array.from({ length: count }, (_, index) => {
    const value = random.normal() * scale;
    if (isNorm) return 1 + value;
    if (kind === 'outliers' && random.chance(0.01)) return value * 20;
    if (kind === 'zero rows' && index < columns) return 0;
    return kind === 'positive' ? Math.abs(value) + 0.01 * scale : value;
  });
}

function asBfloat16(data) {
  const bits = new Uint32Array(data.buffer);
  return Uint16Array.from(bits, (word) => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16);
}

/** To nearest even; values here are far from the ends of the range or fall below it. */
function asFloat16(data) {
  return Uint16Array.from(data, (value) => {
    const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
    const size = Math.abs(value);
    if (!Number.isFinite(value)) return Number.isNaN(value) ? 0x7e00 : sign | 0x7c00;
    if (size < 2 ** -14) return sign | roundEven(size * 2 ** 24);
    const exponent = Math.min(Math.floor(Math.log2(size)), 15);
    return sign | (((exponent + 14) << 10) + roundEven(size * 2 ** (10 - exponent)));
  });
}

function roundEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

const storages = {
  F32: (data) => data,
  F64: (data) => Float64Array.from(data),
  BF16: asBfloat16,
  F16: asFloat16,
};
export const dtypes = [...Array(4).fill('F32'), ...Array(4).fill('BF16'), 'F16', 'F16', 'F64'];

/**
 * Writes a checkpoint and returns what is known of it: {shapes, stacks: tensors of several experts, linear: layers, tied: layers without a weight of their own, canRun}.
 * `shards`: files. `spoiled`: null, or a number that a value of a linear layer has in place of its own: NaN or infinity.
 */
export function writeModel(folder, random, { family, dtype, sizes, isTied, shards, kind, spoiled }) {
  const [architecture, block, keys, canRun, type = family] = families[family];
  const layers = 2;
  const list = [['model.embed_tokens.weight', table(vocabulary, sizes.hidden)]];
  for (let index = 0; index < layers; ++index) {
    const prefix = `model.layers.${index}`;
    list.push(...block(prefix, sizes), [`${prefix}.input_layernorm.weight`, vector(sizes.hidden)]);
    list.push([`${prefix}.post_attention_layernorm.weight`, vector(sizes.hidden)]);
  }
  list.push(['model.norm.weight', vector(sizes.hidden)]);
  if (!isTied) list.push(['lm_head.weight', linear(vocabulary, sizes.hidden)]);

  mkdirSync(folder, { recursive: true });
  const linears = list.filter(([, { isLinear }]) => isLinear);
  const spoiledName = spoiled && random.pick(linears)[0];
  const tensors = list.map(([name, tensor]) => {
    const numbers = values(random, tensor, kind);
    if (name === spoiledName) numbers[random.below(numbers.length)] = Number(spoiled);
    const data = storages[dtype](numbers);
    return [name, { dtype, shape: tensor.shape, data }];
  });
  writeFiles(folder, tensors, shards);
  const config = {
    ...(architecture && { model_type: type, architectures: [architecture] }),
    hidden_size: sizes.hidden,
    intermediate_size: sizes.inner,
    moe_intermediate_size: sizes.inner,
    num_attention_heads: sizes.heads,
    num_key_value_heads: sizes.groups,
    head_dim: sizes.head,
    num_hidden_layers: layers,
    vocab_size: vocabulary,
    max_position_embeddings: 64,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    hidden_act: 'silu',
    pad_token_id: 0,
    bos_token_id: 1,
    eos_token_id: 2,
    tie_word_embeddings: isTied,
    dtype: { F32: 'float32', F64: 'float64', BF16: 'bfloat16', F16: 'float16' }[dtype],
    ...keys,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeCompanions(folder);
  return {
    shapes: Object.fromEntries(list.flatMap(([name, tensor]) => [[name, tensor.shape], ...shapesOfSingles(tensor)])),
    stacks: Object.fromEntries(list.filter(([, { stack }]) => stack).map(([name, { stack }]) => [name, stack])),
    linear: linears.map(([name]) => name.replace(/\.weight$/, '')),
    spoiled: spoiledName,
    // Nobody ties the head of a class that is not named.
    tied: isTied && architecture ? ['lm_head'] : [],
    canRun,
  };
}

/** Names and shapes of the matrices in a tensor of several experts. */
function shapesOfSingles({ shape: [count, ...sides], stack }) {
  if (!stack) return [];
  const [outputs, inputs] = stack.isInputMajor ? sides.toReversed() : sides;
  return Array.from({ length: count }, (_, number) => number).flatMap((number) =>
    stack.parts.map((part) => [`${stack.singles}.${number}.${part}.weight`, [outputs / stack.parts.length, inputs]]),
  );
}

function writeFiles(folder, tensors, shards) {
  if (shards === 1) {
    writeFileSync(join(folder, 'model.safetensors'), safetensors(Object.fromEntries(tensors), { format: 'pt' }));
    return;
  }
  const weightMap = {};
  for (let part = 0; part < shards; ++part) {
    const own = tensors.filter((_, index) => index % shards === part);
    const file = `model-${String(part + 1).padStart(5, '0')}-of-${String(shards).padStart(5, '0')}.safetensors`;
    for (const [name] of own) weightMap[name] = file;
    writeFileSync(join(folder, file), safetensors(Object.fromEntries(own), { format: 'pt' }));
  }
  const total = tensors.reduce((sum, [, { data }]) => sum + data.byteLength, 0);
  writeFileSync(
    join(folder, 'model.safetensors.index.json'),
    JSON.stringify({ metadata: { total_size: total }, weight_map: weightMap }),
  );
}
