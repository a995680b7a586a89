// Small ONNX models, written field by field as onnx.proto numbers them.

const textBytes = (text) => new TextEncoder().encode(text);

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    bytes.push(rest > 0n ? low | 128 : low);
  } while (rest > 0n);
  return Uint8Array.from(bytes);
}
const joined = (parts) => new Uint8Array(Buffer.concat(parts));

/** A field: numbers as varints, texts and bytes with their length. */
export function field(number, value) {
  if (typeof value === 'number' || typeof value === 'bigint') return joined([varint(number << 3), varint(value)]);
  const bytes = typeof value === 'string' ? textBytes(value) : value;
  return joined([varint((number << 3) | 2), varint(bytes.length), bytes]);
}
const message = (...fields) => joined(fields.flat(Number.POSITIVE_INFINITY).filter(Boolean));

const dataTypes = { F32: 1, U8: 2, I8: 3, I32: 6, I64: 7, F16: 10, F64: 11 };
const asBytes = (data) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

/** `external`: {location, offset}; `varints`: values of float16 in int32_data. */
export function tensor(name, dtype, shape, data, { external, varints } = {}) {
  const entry = (key, value) => field(13, message(field(1, key), field(2, String(value))));
  return message(
    shape.map((size) => field(1, size)),
    field(2, dataTypes[dtype]),
    field(8, name),
    external
      ? [
          entry('location', external.location),
          entry('offset', external.offset),
          entry('length', data.byteLength),
          field(14, 1),
        ]
      : varints
        ? field(5, joined(Array.from(data, varint)))
        : field(9, asBytes(data)),
  );
}

function attribute(name, value) {
  if (value instanceof Uint8Array) return message(field(1, name), field(6, value), field(20, 5)); // a graph
  if (Array.isArray(value))
    return message(
      field(1, name),
      value.map((item) => field(8, item)),
      field(20, 7),
    );
  if (typeof value === 'string') return message(field(1, name), field(4, value), field(20, 3));
  return message(field(1, name), field(3, value), field(20, 2));
}

export function node(type, inputs, outputs, { name = '', domain = '', ...attributes } = {}) {
  return message(
    inputs.map((input) => field(1, input)),
    outputs.map((output) => field(2, output)),
    field(3, name),
    field(4, type),
    Object.entries(attributes).map(([key, value]) => field(5, attribute(key, value))),
    domain && field(7, domain),
  );
}

function valueInfo(name, type, shape) {
  const dims = shape.map((size) => field(1, typeof size === 'string' ? field(2, size) : field(1, size)));
  return message(field(1, name), field(2, field(1, message(field(1, dataTypes[type]), field(2, message(dims))))));
}

/** Inputs and outputs are [name, dtype, shape]. */
export function graph({ name = 'g', nodes, tensors = [], inputs = [], outputs }) {
  return message(
    nodes.map((bytes) => field(1, bytes)),
    field(2, name),
    tensors.map((bytes) => field(5, bytes)),
    inputs.map((value) => field(11, valueInfo(...value))),
    outputs.map((value) => field(12, valueInfo(...value))),
  );
}

export function model(graphBytes, { opset = 17, ir = 8 } = {}) {
  return message(
    field(1, ir),
    field(2, 'wasmquant tests'),
    field(7, graphBytes),
    field(8, message(field(1, ''), field(2, opset))),
  );
}

/** The same numbers on every run, -0.5 to 0.5. */
export function noise(count, seed) {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  });
}

/**
 * x [rows, 64] -> MatMul up [64, 96], Relu, Gemm down [32, 96] (transB, bias), and ids -> Gather table [40, 64] into x.
 * `location`: where the weights lie if not inside; `data` is then that file.
 */
export function twoLayers({ location, opset } = {}) {
  const weights = {
    up: { shape: [64, 96], data: noise(64 * 96, 1) },
    'down.weight': { shape: [32, 96], data: noise(32 * 96, 2) },
    'embed_tokens.weight': { shape: [40, 64], data: noise(40 * 64, 3) },
  };
  const chunks = [];
  let offset = 0;
  const tensors = Object.entries(weights).map(([name, { shape, data }]) => {
    const external = location ? { location, offset } : undefined;
    chunks.push(asBytes(data));
    offset += data.byteLength;
    return tensor(name, 'F32', shape, data, { external });
  });
  tensors.push(tensor('down.bias', 'F32', [32], noise(32, 4)));
  const bytes = model(
    graph({
      nodes: [
        node('Gather', ['embed_tokens.weight', 'ids'], ['e'], { name: '/embed_tokens/Gather' }),
        node('MatMul', ['e', 'up'], ['h'], { name: '/mlp/up_proj/MatMul' }),
        node('Relu', ['h'], ['r']),
        node('Gemm', ['r', 'down.weight', 'down.bias'], ['y'], { name: '/mlp/down_proj/Gemm', transB: 1 }),
      ],
      tensors,
      inputs: [['ids', 'I64', ['n']]],
      outputs: [['y', 'F32', ['n', 32]]],
    }),
    { opset },
  );
  return { bytes, data: joined(chunks), weights };
}

/** x [1, 3, 12, 12] -> Conv [8, 3, 3, 3] -> ConvTranspose [8, 4, 2, 2]. */
export function convolutions() {
  return model(
    graph({
      nodes: [
        node('Conv', ['x', 'conv.weight', 'conv.bias'], ['c'], { name: '/conv/Conv' }),
        node('ConvTranspose', ['c', 'up.weight'], ['y'], { name: '/up/ConvTranspose', strides: [2, 2] }),
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

/** input_ids [batch, sequence] -> Gather [words, 64] -> MatMul [64, 96], Relu, MatMul [96, words] -> logits. */
export function wordModel(words) {
  return model(
    graph({
      nodes: [
        node('Gather', ['model.embed_tokens.weight', 'input_ids'], ['e'], { name: '/model/embed_tokens/Gather' }),
        node('MatMul', ['e', 'onnx::MatMul_1'], ['h'], { name: '/model/mlp/up_proj/MatMul' }),
        node('Relu', ['h'], ['r']),
        node('MatMul', ['r', 'onnx::MatMul_2'], ['logits'], { name: '/lm_head/MatMul' }),
      ],
      tensors: [
        tensor('model.embed_tokens.weight', 'F32', [words, 64], noise(words * 64, 11)),
        tensor('onnx::MatMul_1', 'F32', [64, 96], noise(64 * 96, 12)),
        tensor('onnx::MatMul_2', 'F32', [96, words], noise(96 * words, 13)),
      ],
      inputs: [['input_ids', 'I64', ['batch', 'sequence']]],
      outputs: [['logits', 'F32', ['batch', 'sequence', words]]],
    }),
  );
}
