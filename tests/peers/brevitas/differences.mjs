// Where ours differs from Quark's Brevitas extension on Brevitas 0.13, on purpose. A difference that none of these explains is a failure.

/** Of a tensor that only one of the two quantizes: {tensor, type, isQuantizedThere}; `type` is the class of the layer. */
export const layers = [
  {
    id: 'classes of their own',
    text: 'GPT-2’s Conv1D is a module of a class that Brevitas passes over; files of weights have no classes, so ours quantizes it like the linear layer that it is',
    explains: ({ type, isQuantizedThere }) => type === 'Conv1D' && !isQuantizedThere,
  },
  {
    id: 'packed attention',
    text: 'in_proj_weight of nn.MultiheadAttention stays float here: only tensors called *.weight are weights of layers',
    explains: ({ tensor, isQuantizedThere }) => tensor.name.endsWith('.in_proj_weight') && isQuantizedThere,
  },
];

/** Of a weight that both quantize: {tensor, spec, type, parts, errors}. */
export const weights = [];

/** Of a config that the extension refuses and ours takes: {error, config}. */
export const acceptances = [
  {
    id: 'inputs per channel',
    text: 'the extension forces inputs to per_tensor, but looks per_channel up for attention, in any model, and fails; ours warns and takes per_tensor',
    explains: ({ error, config }) =>
      error.startsWith('KeyError: <QSchemeType.per_channel') &&
      config.global_quant_config.input_tensors?.qscheme === 'per_channel',
  },
];

/** Of a config that ours refuses and the extension takes; a diagnostic. */
export const refusals = [
  {
    id: 'widths that do not add up',
    text: 'bit_width of floats other than 1 + exponent_bit_width + mantissa_bit_width: Brevitas 0.13 ignores it, 0.12 failed',
    explains: ({ code, where, message }) =>
      code === 'value-invalid' && where.endsWith('/bit_width') && message.includes(', a sign, '),
  },
  {
    id: 'biases',
    text: 'Brevitas quantizes a bias with the scale of input times weight while the model runs; no output format stores that',
    explains: ({ code, where }) => code === 'not-implemented' && where === '/global_quant_config/bias',
  },
  {
    id: 'batch norms estimated again',
    text: 'CalibrateBatchNorm runs the quantized model to find new statistics of its batch norms; that is not done here',
    explains: ({ code, message }) => code === 'not-implemented' && message.startsWith('statistics of batch norms'),
  },
  {
    id: 'channel splitting',
    text: 'channel_splitting_ratio makes layers wider, which is not done here',
    explains: ({ code, where }) => code === 'not-implemented' && where.endsWith('/channel_splitting_ratio'),
  },
  {
    id: 'GPFA2Q',
    text: 'GPFA2Q bounds an accumulator; Brevitas has had only GPFQ since 0.12, which is the name to write',
    explains: ({ code, message }) => code === 'not-implemented' && message.includes('bound of GPFA2Q'),
  },
  {
    id: 'one bit',
    text: 'integers of one bit: Brevitas takes them for inputs and outputs, and makes NaN of weights',
    explains: ({ code, where, message }) =>
      code === 'value-invalid' && where.endsWith('/bit_width') && message.startsWith('1 bits'),
  },
];
