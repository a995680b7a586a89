// Where our resolution of a config differs from what Quark 0.13 sets on modules, on purpose. A difference that none of these explains is a failure.

const withoutSymmetry = (text) => text.replace(/"symmetric":\w+,("zero_point_type":"\w+",)?/, '');

/** Of one layer: {name, id, explains}. `layer` has {ours, theirs, tensor, isOfOwnClass, names}. */
export const layerDifferences = [
  {
    id: 'classes of their own',
    text: 'GPT-2’s Conv1D, routers and positional embeddings are modules of classes that Quark passes over; files of weights have no classes, so ours quantizes them like the linear layer or embedding that they are',
    explains: ({ isOfOwnClass, theirs }) => isOfOwnClass && theirs === 'none',
  },
  {
    id: 're: patterns',
    text: 'a name that begins with "re:" is a regular expression here; in Quark it is a glob, which matches no module',
    explains: ({ tensor }) => /"re:/.test(tensor.reason.text),
  },
  {
    id: 'symmetric left out',
    text: 'int2 is the only signed integer whose spec Quark takes without `symmetric`; it then has zero points, and here none, like its own Int2PerGroupSpec',
    explains: ({ ours, theirs }) =>
      ours.includes('"dtype":"int2"') && withoutSymmetry(ours) === withoutSymmetry(theirs),
  },
];

/** Of a config that ours refuses and Quark takes; `problem` is a diagnostic. */
export const refusals = [
  {
    id: 'observers of another qscheme or dtype',
    text: 'Quark takes any observer for per_block, and PerBlockBFPObserver for integers: what they find is not what the qscheme says',
    explains: ({ code, message }) =>
      code === 'observer-mismatch' &&
      /qscheme per_block|^PerBlockBFPObserver does not support dtype u?int/.test(message),
  },
  {
    id: 'searches in lists of specs',
    text: 'of the observers that search a range, none works in a list of two specs',
    explains: ({ code, message }) => code === 'spec-invalid' && message.includes('does not work in lists of specs'),
  },
  {
    id: 'scales of groups without groups',
    text: 'scale_format e4m3 (NVFP4) without groups: Quark ignores it for fp8, and takes it for fp4',
    explains: ({ code, message }) => code === 'value-invalid' && message.includes('e4m3 is for the scales of groups'),
  },
  {
    id: 'axes of biases',
    text: 'a bias has one axis; with another ch_axis Quark sets the spec and fails as soon as the layer runs',
    explains: ({ code, where, message }) =>
      code === 'shape-mismatch' &&
      where.endsWith('.bias') &&
      /^ch_axis -?\d+ is not an axis of shape \[\d+\]/.test(message),
  },
  {
    id: 'softmax',
    text: 'softmax_quant_spec quantizes attention probabilities while a model runs; no file says so, and it is refused when it is set',
    explains: ({ code, where }) => code === 'not-implemented' && where === '/softmax_quant_spec',
  },
  {
    id: 'algorithms that train',
    text: 'AutoRound trains roundings, and TwoBitScalar its own codes; they are refused',
    explains: ({ code, where, message }) =>
      code === 'not-implemented' && where.startsWith('/algo_config') && /"(autoround|twobitscalar)"/.test(message),
  },
  {
    id: 'blocks of transposed weights',
    text: 'formats of simulated weights have no blocks along the first axis, which is where those of a Conv1D lie; Quark passes Conv1D over',
    explains: ({ code, where }) => code === 'format-unsupported' && /^transformer\.h\.\d+\./.test(where),
  },
];

/** Counts of what was explained, by row. */
export class Explained {
  counts = new Map();

  /** Whether one of `rows` explains it; counts that. */
  by(rows, what) {
    const row = rows.find(({ explains }) => explains(what));
    if (!row) return false;
    this.counts.set(row, (this.counts.get(row) ?? 0) + 1);
    return true;
  }

  /** How often something was explained. */
  get total() {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  lines() {
    return [...this.counts].map(([{ id, text }, count]) => `${id} (${count}): ${text}`);
  }
}
