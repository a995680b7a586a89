// Layers of a checkpoint as each format stores them, made without the code under test. A layer's codes, scales and zero
// points are each one number, so that the value of all its weights is known and any order of codes in words is the same.

const [rows, columns] = [128, 256];
const shape = [rows, columns];
/** int8 of bitsandbytes: 127 times the float32 next to 1 / 127. */
const of127 = Math.fround(127 * Math.fround(7.874015718698502e-3));

const fill = (Type, count, value) => new Type(count).fill(value);
const tensor = (dtype, dims, data) => ({ dtype, shape: dims, data });
const product = (dims) => dims.reduce((a, b) => a * b, 1);
/** Equal codes as a stream of bits along the first axis of the words; 4 and 8 bits are the same along any axis. */
function codes(dtype, dims, code, bits) {
  const data = new Uint32Array(product(dims));
  for (let word = 0; word < data.length; ++word)
    for (let bit = 0; bit < 32; ++bit)
      if ((code >> ((Math.floor(word / dims[1]) * 32 + bit) % bits)) & 1) data[word] |= 1 << bit;
  return tensor(dtype, dims, data);
}
const bytes = (dims, code) => tensor('U8', dims, fill(Uint8Array, product(dims), code * 17));
const float8 = (dims, bits) => tensor('F8_E4M3', dims, fill(Uint8Array, product(dims), bits));
const float32 = (dims, value) => tensor('F32', dims, fill(Float32Array, product(dims), value));
/** A power of two. */
const float16 = (dims, exponent) => tensor('F16', dims, fill(Uint16Array, product(dims), (exponent + 15) << 10));
const bfloat16 = (dims, exponent) => tensor('BF16', dims, fill(Uint16Array, product(dims), (exponent + 127) << 7));

const scaleShape = (scheme, size) =>
  ({ tensor: [1], channel: [rows, 1], group: [rows, columns / size], block: [rows / size, columns / size] })[scheme];
const named = (layer, parts, joint = '.') =>
  Object.fromEntries(Object.entries(parts).map(([part, content]) => [`${layer}${joint}${part}`, content]));
const powers = (dims, e) => tensor('U8', dims, fill(Uint8Array, product(dims), 127 + e));

/** E4M3 0x40 is 2; E2M1 code 3 is 1.5; E8M0 byte 127 + e is 2^e. `e`: exponent of the layer's scale. */
const makers = {
  'compressed-tensors': ({ dtype, scheme, size }, e) => {
    const scale = scaleShape(scheme, size);
    if (dtype === 'fp8_e4m3')
      return [{ weight: float8(shape, 0x40), weight_scale: bfloat16(scale, e), input_scale: bfloat16([1], 0) }, 2];
    if (dtype === 'fp4' && size === 16)
      return [
        {
          weight_packed: bytes([rows, columns / 2], 3),
          weight_scale: float8(scale, 0x40),
          weight_global_scale: float32([1], 2 ** (1 - e)),
        },
        1.5,
      ];
    if (dtype === 'fp4') return [{ weight_packed: bytes([rows, columns / 2], 3), weight_scale: powers(scale, e) }, 1.5];
    if (dtype === 'int8')
      return [
        { weight: tensor('I8', shape, fill(Int8Array, rows * columns, -3)), weight_scale: bfloat16(scale, e) },
        -3,
      ];
    const size64 = new BigInt64Array([BigInt(rows), BigInt(columns)]);
    const packed = codes('I32', [rows, columns / 8], 13, 4);
    return [{ weight_packed: packed, weight_scale: bfloat16(scale, e), weight_shape: tensor('I64', [2], size64) }, 5];
  },
  gptq: ({ dtype, size }, e) => {
    const bits = Number(dtype.slice(3));
    const [middle, groups] = [2 ** (bits - 1), columns / (size ?? columns)];
    const index = Int32Array.from({ length: columns }, (_, i) => Math.floor(i / (size ?? columns)));
    return [
      {
        qweight: codes('I32', [(columns * bits) / 32, rows], middle + 2, bits),
        qzeros: turned(codes('I32', [(rows * bits) / 32, groups], middle - 1, bits)),
        scales: float16([groups, rows], e),
        g_idx: tensor('I32', [columns], index),
      },
      2,
    ];
  },
  awq: ({ size }, e) => [
    {
      qweight: codes('I32', [columns, rows / 8], 11, 4),
      qzeros: codes('I32', [columns / size, rows / 8], 7, 4),
      scales: float16([columns / size, rows], e),
    },
    4,
  ],
  fp8: ({ scheme, size }, e) => [
    { weight: float8(shape, 0x40), weight_scale_inv: float32(scaleShape(scheme, size), 2 ** e) },
    2,
  ],
  fbgemm_fp8: (_, e) => [
    { weight: float8(shape, 0x40), weight_scale: float32([rows, 1], 2 ** e), input_scale_ub: float32([1], 1200) },
    2,
  ],
  quark: (_, e) => [{ weight: bytes([rows, columns / 2], 3), weight_scale: powers([rows, columns / 32], e) }, 1.5],
  mxfp4: (_, e) => [{ blocks: bytes([2, rows, columns / 32, 16], 3), scales: powers([2, rows, columns / 32], e) }, 1.5],
  modelopt: ({ dtype }, e) =>
    dtype === 'fp8_e4m3'
      ? [{ weight: float8(shape, 0x40), weight_scale: float32([], 2 ** e), input_scale: float32([], 1) }, 2]
      : [
          {
            weight: bytes([rows, columns / 2], 3),
            weight_scale: float8([rows, columns / 16], 0x40),
            weight_scale_2: float32([], 2 ** (e - 1)),
            input_scale: float32([], 1),
          },
          1.5,
        ],
  mlx: ({ dtype, size }, e) => {
    const bits = dtype === 'uint8' ? 8 : 4;
    const weight = codes('U32', [rows, (columns * bits) / 32], 3, bits);
    const groups = [rows, columns / size];
    if (dtype === 'fp4') return [{ weight, scales: powers(groups, e) }, 1.5];
    return [{ weight, scales: bfloat16(groups, e), biases: bfloat16(groups, e) }, 4];
  },
  bitsandbytes: ({ dtype, scheme }, e) => {
    if (dtype === 'int8')
      return [
        { weight: tensor('I8', shape, fill(Int8Array, rows * columns, 127)), SCB: float32([rows], 2 ** e) },
        of127,
      ];
    const table = Float32Array.from({ length: 16 }, (_, i) => i / 8 - 1);
    const [elements, blocks] = [rows * columns, (rows * columns) / 64];
    const state = { quant_type: 'nf4', blocksize: 64, dtype: 'bfloat16', shape };
    const isNested = scheme === 'nested';
    if (isNested) Object.assign(state, { nested_blocksize: 256, nested_dtype: 'float32', nested_offset: 0 });
    const json = new Uint8Array(Buffer.from(JSON.stringify(state)));
    const parts = {
      weight: tensor('U8', [elements / 2, 1], fill(Uint8Array, elements / 2, 0xcc)),
      'weight.quant_map': tensor('F32', [16], table),
      'weight.quant_state.bitsandbytes__nf4': tensor('U8', [json.length], json),
      'weight.absmax': isNested ? tensor('U8', [blocks], fill(Uint8Array, blocks, 9)) : float32([blocks], 2 ** e),
    };
    if (isNested) {
      parts['weight.nested_quant_map'] = tensor('F32', [256], fill(Float32Array, 256, 0.5));
      parts['weight.nested_absmax'] = float32([blocks / 256], 2 ** (e + 1));
    }
    return [parts, 0.5];
  },
};

/** [n, m] to [m, n]. */
function turned({ dtype, shape: [n, m], data }) {
  return tensor(
    dtype,
    [m, n],
    data.map((_, at) => data[(at % n) * m + Math.floor(at / n)]),
  );
}

/** Tensors of a layer as `format` stores them, and the weight that they are. `text`: "int4 group 128". */
export function storedLayer(format, text, layer, index) {
  const e = -1 - (index % 4);
  const [dtype, scheme, size] = text.split(' ');
  const [parts, code] = makers[format]({ dtype, scheme, size: size && Number(size) }, e);
  const isExperts = format === 'mxfp4'; // a parameter of two experts, each of them transposed
  const dims = isExperts ? [2, columns, rows] : shape;
  const name = isExperts ? layer : `${layer}.weight`;
  return { tensors: named(layer, parts, isExperts ? '_' : '.'), values: { [name]: float32(dims, code * 2 ** e) } };
}

/** A weight that is not quantized. */
export function plainLayer(layer, index) {
  const exponent = index % 4;
  return {
    tensors: named(layer, { weight: bfloat16(shape, exponent) }),
    values: named(layer, { weight: float32(shape, 2 ** exponent) }),
  };
}
