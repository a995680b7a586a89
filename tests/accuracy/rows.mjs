// The rows of the table: model, who quantizes, to what, with which algorithms.

const withoutData = [[]];
const withAlgorithms = [[], ['gptq'], ['awq'], ['awq', 'gptq']];

/** Presets of SmolLM2-135M, whose hidden size of 576 has no groups of 128: [preset, lists of algorithms]. */
const presets = [
  ['int8', withoutData],
  ['fp8_per_channel', withoutData],
  ['int4_wo_32', withAlgorithms],
  ['int4_wo_64', withAlgorithms],
  ['uint4_wo_64', withAlgorithms],
  ['int4_wo_per_channel', withAlgorithms],
  ['mxfp4_weight_only', [[], ['gptq']]],
  ['nvfp4', withoutData],
];
const recipes = ['q8_0', 'q6_k', 'q5_k_m', 'q4_k_m', 'q4_0', 'iq4_xs', 'q3_k_m', 'q2_k'];
const encoderPresets = ['int8', 'fp8_per_channel', 'int4_wo_32', 'int4_wo_64', 'int4_wo_128', 'uint4_wo_64'];

const row = (model, tool, preset, algorithms, format) => ({
  name: [model, tool, [preset, ...algorithms].join('+')].join('/'),
  model,
  tool,
  preset,
  algorithms,
  format,
});

/** In the order of the table. */
export const rows = [
  ...presets.flatMap(([preset, lists]) =>
    lists.map((algorithms) => row('smollm2', 'wasmquant', preset, algorithms, 'compressed-tensors')),
  ),
  ...recipes.flatMap((recipe) => ['wasmquant', 'llama.cpp'].map((tool) => row('smollm2', tool, recipe, [], 'gguf'))),
  ...encoderPresets.map((preset) => row('minilm', 'wasmquant', preset, [], 'compressed-tensors')),
];
