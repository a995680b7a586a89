// Small models with every kind of layer that we quantize, and the configs that make every operator form of them.
import { graph, model, node, noise, tensor, twoLayers } from '../../node/onnx/model.mjs';

const values = (data) => Array.from(data, (x) => Number(x));
const floats = (shape, seed) => ({
  type: 'float32',
  data: values(
    noise(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
  ),
  dims: shape,
});
const ids = (...list) => ({ type: 'int64', data: list, dims: [list.length] });

/** ids -> Gather table [40, width] -> MatMul with the same table: an embedding tied to its head. */
function tied(width) {
  return model(
    graph({
      nodes: [
        node('Gather', ['table', 'ids'], ['e'], { name: '/embed/Gather' }),
        node('Transpose', ['table'], ['t'], { name: '/head/Transpose', perm: [1, 0] }),
        node('MatMul', ['e', 't'], ['y'], { name: '/head/MatMul' }),
      ],
      tensors: [tensor('table', 'F32', [40, width], noise(40 * width, 6))],
      inputs: [['ids', 'I64', ['n']]],
      outputs: [['y', 'F32', ['n', 40]]],
    }),
  );
}

/** x [1, 3, 12, 12] -> Conv [8, 3, 3, 3] -> ConvTranspose [8, 4, 2, 2]. Attributes are written out: jsep needs them on WebGPU. */
function convolutions() {
  const attributes = (kernel, strides) => ({
    kernel_shape: [kernel, kernel],
    strides: [strides, strides],
    dilations: [1, 1],
    pads: [0, 0, 0, 0],
    group: 1,
  });
  return model(
    graph({
      nodes: [
        node('Conv', ['x', 'conv.weight', 'conv.bias'], ['c'], { name: '/conv/Conv', ...attributes(3, 1) }),
        node('ConvTranspose', ['c', 'up.weight'], ['y'], { name: '/up/ConvTranspose', ...attributes(2, 2) }),
      ],
      tensors: [
        tensor('conv.weight', 'F32', [8, 3, 3, 3], noise(216, 5)),
        tensor('conv.bias', 'F32', [8], noise(8, 6)),
        tensor('up.weight', 'F32', [8, 4, 2, 2], noise(128, 7)),
      ],
      inputs: [['x', 'F32', [1, 3, 12, 12]]],
      outputs: [['y', 'F32', [1, 4, 20, 20]]],
    }),
  );
}

function recurrent() {
  const weights = (name, gates, inputs) => [
    tensor(`${name}.W`, 'F32', [1, gates * 16, inputs], noise(gates * 16 * inputs, 7)),
    tensor(`${name}.R`, 'F32', [1, gates * 16, 16], noise(gates * 256, 8)),
  ];
  return model(
    graph({
      nodes: [
        node('LSTM', ['x', 'lstm.W', 'lstm.R'], ['h'], { name: '/lstm', hidden_size: 16 }),
        node('Squeeze', ['h', 'one'], ['s']),
        node('GRU', ['s', 'gru.W', 'gru.R'], ['y'], { name: '/gru', hidden_size: 16 }),
      ],
      tensors: [...weights('lstm', 4, 12), ...weights('gru', 3, 16), tensor('one', 'I64', [1], BigInt64Array.of(1n))],
      inputs: [['x', 'F32', [5, 1, 12]]],
      outputs: [['y', 'F32', [5, 1, 1, 16]]],
    }),
  );
}

const preset = (name, more = {}) => ({ config: name, ...more });
const round = { mayRound: true };
const classes = ['Linear', 'Embedding', 'Conv2d', 'ConvTranspose2d'];
const everywhere = (weight, values = {}, names = classes) => ({
  global_quant_config: {},
  layer_type_quant_config: Object.fromEntries(names.map((name) => [name, { weight, ...values }])),
});

/** Every dtype in groups, per channel and per tensor, for embeddings, too. */
function own() {
  const forms = {};
  for (const dtype of ['int8', 'uint8', 'int4', 'uint4', 'int2', 'uint2']) {
    const symmetric = dtype.startsWith('int');
    const group = { dtype, qscheme: 'per_group', ch_axis: -1, group_size: 16, symmetric };
    forms[`${dtype} groups`] = { config: everywhere(group) };
    forms[`${dtype} channel`] = { config: everywhere({ dtype, qscheme: 'per_channel', ch_axis: 0, symmetric }) };
    forms[`${dtype} tensor`] = { config: everywhere({ dtype, qscheme: 'per_tensor', symmetric }) };
  }
  return forms;
}

const language = {
  ...Object.fromEntries(
    [
      ...['int8', 'int8_per_tensor', 'int4_wo_32', 'int4_wo_128', 'int4_wo_per_channel', 'uint4_wo_32'],
      ...['uint4_wo_per_channel', 'int2_wo_32'],
    ].map((name) => [name, preset(name)]),
  ),
  int8_dynamic: preset('int8_dynamic', round),
  'int8 level 4': preset('int8', { onnx: { accuracyLevel: 4 }, ...round }),
  'int4_wo_32 level 4': preset('int4_wo_32', { onnx: { accuracyLevel: 4 }, ...round }),
  ...Object.fromEntries(
    ['int8', 'int8_per_tensor', 'int4_wo_32', 'uint4_wo_32'].map((name) => [
      `${name} qdq`,
      preset(name, { onnx: { qdq: true } }),
    ]),
  ),
  ...own(),
};

const padded = Object.fromEntries(
  ['int4_wo_per_channel', 'uint4_wo_per_channel', 'int8 level 4', 'uint2 channel'].map((name) => [
    name,
    language[name],
  ]),
);

const bytes = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false };
const uint8 = { ...bytes, is_dynamic: false };
const channels = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const convolving = {
  ...Object.fromEntries(['int8', 'int8_per_tensor', 'int4_wo_32'].map((name) => [name, preset(name)])),
  int8_dynamic: preset('int8_dynamic', round),
  'uint8 dynamic': {
    config: everywhere(bytes, { input_tensors: { ...bytes, is_dynamic: true } }, ['Conv2d']),
    ...round,
  },
  'static inputs': { config: everywhere(channels, { input_tensors: uint8 }), isStatic: true, ...round },
  'static inputs and outputs': {
    config: everywhere(channels, { input_tensors: uint8, output_tensors: uint8 }),
    isStatic: true,
    ...round,
  },
};

/** {model, name, bytes, feeds, forms: {name: {config, onnx, isStatic, mayRound}}}; mayRound: values are rounded while it runs. */
export function formsOf() {
  const words = ids(1, 39, 7, 25, 9, 33, 0, 3);
  const recurrentForms = Object.fromEntries(['int8', 'int4_wo_32', 'int8_dynamic'].map((name) => [name, preset(name)]));
  return [
    {
      model: 'words',
      name: 'embedding, MatMul, Gemm',
      bytes: twoLayers().bytes,
      feeds: { ids: words },
      forms: language,
    },
    { model: 'tied', name: 'tied embedding', bytes: tied(96), feeds: { ids: words }, forms: language },
    { model: 'padded', name: 'tied embedding of 52 columns', bytes: tied(52), feeds: { ids: words }, forms: padded },
    {
      model: 'conv',
      name: 'Conv, ConvTranspose',
      bytes: convolutions(),
      feeds: { x: floats([1, 3, 12, 12], 9) },
      forms: convolving,
    },
    {
      model: 'recurrent',
      name: 'LSTM, GRU',
      bytes: recurrent(),
      feeds: { x: floats([5, 1, 12], 10) },
      forms: recurrentForms,
    },
  ];
}
