// The rows of the table: model, who quantizes, to what, with which algorithms.

/** Presets of SmolLM2-135M, whose hidden size of 576 has no groups of 128: [preset, format]. Without data. */
const presets = [
  ['int8', 'compressed-tensors'],
  ['fp8_per_channel', 'compressed-tensors'],
  ['mxfp8', 'compressed-tensors'],
  ['bfp16', 'quark'],
  ['mxfp6_e2m3', 'quark'],
  ['mx6', 'quark'],
  ['int4_wo_32', 'compressed-tensors'],
  ['int4_wo_64', 'compressed-tensors'],
  ['int4_wo_per_channel', 'compressed-tensors'],
  ['uint4_wo_32', 'compressed-tensors'],
  ['uint4_wo_64', 'compressed-tensors'],
  ['mxfp4_weight_only', 'compressed-tensors'],
  ['nvfp4', 'compressed-tensors'],
  ['amdfp4', 'quark'],
  ['int3_wo_32', 'gptq'],
  ['int3_wo_64', 'gptq'],
  ['int2_wo_32', 'gptq'],
];

/** `best` is that of presetConfig. */
const algorithms = {
  int4_wo_64: [['gptq'], ['gptaq'], ['qronos'], ['gpfq'], ['awq'], ['smoothquant', 'gptq'], ['awq', 'gptq'], ['best']],
  uint4_wo_64: [['gptq'], ['best']],
  mxfp4_weight_only: [['gptq'], ['best']],
  int3_wo_64: [['gptq'], ['best']],
  int2_wo_32: [['best']],
};

/** The tools that people use, with symmetric integers in groups of 64. */
const others = {
  gptqmodel: [
    ['int4_wo_64', ['gptq']],
    ['int3_wo_64', ['gptq']],
  ],
  'llm-compressor': [
    ['int4_wo_64', ['gptq']],
    ['int3_wo_64', ['gptq']],
  ],
  AutoRound: [
    ['int4_wo_64', ['signround']],
    ['int3_wo_64', ['signround']],
  ],
};

/** Without data; by the importance of columns, the same matrix for both tools; and `best`. */
const recipes = ['q8_0', 'q6_k', 'q5_k_m', 'q4_k_m', 'q4_0', 'iq4_xs', 'q3_k_m', 'q2_k'];
/** Of the model that was never rounded: by importance in llama.cpp, and `best`. */
const finerRecipes = [...recipes.slice(2), 'iq3_s', 'iq3_xxs', 'iq2_xs'];
/** Of the larger model that was never rounded. */
const trainedRecipes = ['q5_k_m', 'q4_k_m'];
const mixturePrefix = 'mixture_';
/** The recipe whose size a mixture has; of other presets undefined. */
export const sizeOfMixture = (preset) =>
  preset.startsWith(mixturePrefix) ? preset.slice(mixturePrefix.length) : undefined;

const encoderPresets = ['int8', 'fp8_per_channel', 'int4_wo_32', 'int4_wo_64', 'int4_wo_128', 'uint4_wo_64'];

const row = (model, tool, preset, algorithms, format) => ({
  name: [model, tool, [preset, ...algorithms].join('+')].join('/'),
  model,
  tool,
  preset,
  algorithms,
  format,
});

const besideImportance = (model, recipe) => [
  row(model, 'llama.cpp', recipe, ['imatrix'], 'gguf'),
  row(model, 'wasmquant', recipe, ['best'], 'gguf'),
];

/** In the order of the table. */
export const rows = [
  ...presets.flatMap(([preset, format]) => [
    ...[[], ...(algorithms[preset] ?? [])].map((list) => row('smollm2', 'wasmquant', preset, list, format)),
    ...Object.entries(others).flatMap(([tool, schemes]) =>
      schemes.filter(([scheme]) => scheme === preset).map(([, list]) => row('smollm2', tool, preset, list, format)),
    ),
  ]),
  ...recipes.flatMap((recipe) => [
    ...[[], ['imatrix']].flatMap((list) =>
      ['wasmquant', 'llama.cpp'].map((tool) => row('smollm2', tool, recipe, list, 'gguf')),
    ),
    row('smollm2', 'wasmquant', recipe, ['best'], 'gguf'),
  ]),
  row('smollm2', 'wasmquant', `${mixturePrefix}q3_k_m`, ['best'], 'gguf'),
  ...trainedRecipes.flatMap((recipe) => besideImportance('kjv-22m', recipe)),
  row('kjv-22m', 'wasmquant', `${mixturePrefix}q4_k_m`, ['best'], 'gguf'),
  ...finerRecipes.flatMap((recipe) => besideImportance('tiny-llama', recipe)),
  ...encoderPresets.map((preset) => row('minilm', 'wasmquant', preset, [], 'compressed-tensors')),
];
