// Where ours differs from aihwkit, on purpose. A difference that none of these explains is a failure.

/** Of a tensor that only one of the two quantizes: {tensor, type, isQuantizedThere}; `type` is the class of the layer. */
export const layers = [
  {
    id: 'subclasses',
    text: 'out_proj of nn.MultiheadAttention is of a subclass of Linear, which aihwkit passes over; files of weights have no classes, so ours quantizes it like the linear layer that it is',
    explains: ({ type, isQuantizedThere }) => type === 'NonDynamicallyQuantizableLinear' && !isQuantizedThere,
  },
];

/** Of a weight that both quantize: {tensor, spec, type, parts, errors}. */
export const weights = [
  {
    id: 'ends of searches',
    text: 'Brent’s method stops within 1e-5 of a minimum, and sums of float32 in another order end it elsewhere in a flat valley; squared errors agree within 1 %',
    explains: ({ spec, errors }) => /RangeMSE/.test(spec.observer_cls) && errors.ours <= errors.theirs * 1.01 + 1e-12,
  },
  {
    id: 'flat cross entropies',
    text: 'the same for cross entropy, which is flatter, and has its minimum at another place than the squared error; that agrees within 10 %',
    explains: ({ spec, errors }) =>
      /RangeCrossEntropy/.test(spec.observer_cls) && errors.ours <= errors.theirs * 1.1 + 1e-12,
  },
];

/** Of a config that aihwkit refuses and ours takes: {error, config}. */
export const acceptances = [
  {
    id: 'channels of norms',
    text: 'aihwkit cannot search a range for each element of a LayerNorm’s weight: it takes the length of a number',
    explains: ({ error }) => error === 'TypeError: len() of a 0-d tensor',
  },
  {
    id: 'cross entropy of norms',
    text: 'aihwkit takes the softmax over the second axis, which the weight of a LayerNorm lacks; here it is over all',
    explains: ({ error }) => error.startsWith('IndexError: Dimension out of range (expected to be in range of [-1, 0]'),
  },
];

/** Of a config that ours refuses and aihwkit takes; a diagnostic. */
export const refusals = [
  {
    id: 'cross entropy per channel',
    text: 'aihwkit takes cross_entropy with per_channel and golden_section, and fails as soon as it meets a matrix',
    explains: ({ where, message }) =>
      where.endsWith('/per_channel') &&
      message.startsWith('cross_entropy with golden_section has a range for each channel'),
  },
  {
    id: 'one bit',
    text: 'integers of one bit: with zero points aihwkit has two codes, without them it divides by zero',
    explains: ({ where, message }) =>
      where.endsWith('/n_bits') && (message.includes('integers of 1 bits') || message.startsWith('one symmetric bit')),
  },
];
