// Random specs, configs and algorithms: what may stand in a config, without asking whether the parts go together.

const integers = ['int8', 'int8', 'uint8', 'int4', 'int4', 'uint4', 'int3', 'int2', 'uint2'];
const floats = ['fp8_e4m3', 'fp8_e4m3', 'fp8_e5m2', 'fp4', 'fp6_e3m2', 'fp6_e2m3'];
const groupSizes = [8, 8, 16, 16, 32, 32, 64, 128, -1, 24, 1000];

const perGroup = (random, dtype, symmetric) => {
  return { dtype, qscheme: 'per_group', ch_axis: -1, group_size: random.pick(groupSizes), symmetric };
};

const symmetricOf = (random, dtype) => (dtype.startsWith('u') ? false : random.chance(0.6));

const mx = (random, elements) => ({ dtype: 'mx', mx_element_dtype: random.pick(elements) });

/** An integer in groups, per channel or per tensor. */
function integer(random, dtypes, schemes) {
  const [dtype, qscheme] = [random.pick(dtypes), random.pick(schemes)];
  const symmetric = symmetricOf(random, dtype);
  if (qscheme === 'per_group') return perGroup(random, dtype, symmetric);
  return { dtype, qscheme, ...(qscheme === 'per_channel' && { ch_axis: 0 }), symmetric };
}

const wide = (random) => ({
  dtype: 'fp8_e4m3',
  ...random.pick([
    { qscheme: 'per_tensor' },
    { qscheme: 'per_channel', ch_axis: 0 },
    { qscheme: 'per_block', block_size: [random.pick([8, 16, 128]), random.pick([8, 32, 128])] },
  ]),
});

const small = (random) => ({
  ...perGroup(random, random.pick(['fp4', 'fp6_e3m2', 'fp6_e2m3', 'fp8_e4m3', 'fp8_e5m2']), true),
  scale_format: random.pick(['float32', 'e8m0', 'e4m3']),
});

const nvfp4 = () => {
  return { dtype: 'fp4', qscheme: 'per_group', ch_axis: -1, group_size: 16, scale_format: 'e4m3' };
};

/** Specs that a format is made for; any other, now and then. */
const ofFormat = {
  awq: (random) => perGroup(random, 'uint4', false),
  gptq: (random) => perGroup(random, random.pick(['int4', 'int8', 'int2', 'int3']), true),
  'compressed-tensors': (random) =>
    random.pick([
      () => integer(random, ['int8', 'int4', 'uint4', 'uint8', 'int2'], ['per_group', 'per_group', 'per_channel']),
      () => wide(random),
      () => mx(random, ['fp4', 'fp8_e4m3']),
      nvfp4,
    ])(),
  quark: (random) =>
    random.pick([
      () =>
        integer(random, ['int8', 'int4', 'uint4', 'uint8'], ['per_group', 'per_group', 'per_channel', 'per_tensor']),
      () => integer(random, ['int2', 'int3'], ['per_group']),
      () => wide(random),
      () => small(random),
      () => mx(random, ['fp8_e4m3', 'fp8_e5m2', 'fp6_e3m2', 'fp6_e2m3', 'fp4', 'int8']),
      () => ({ dtype: random.pick(['mx6', 'mx9', 'bfp16']) }),
    ])(),
  onnx: (random) =>
    integer(random, ['int8', 'uint8', 'int4', 'uint4'], ['per_group', 'per_group', 'per_channel', 'per_tensor']),
};

export function randomSpec(random, format) {
  const spec = random.chance(0.8) ? ofFormat[format](random) : anySpec(random);
  if (random.chance(0.1) && !(spec.scale_format ?? '').startsWith('e'))
    spec.scale_type = random.pick(['float16', 'bfloat16']);
  if (random.chance(0.1) && /^u?int[48]/.test(spec.dtype) && spec.qscheme) {
    const kind = { per_tensor: 'PerTensor', per_channel: 'PerChannel', per_group: 'PerGroup' }[spec.qscheme];
    if (kind) spec.observer_cls = `${kind}MSEObserver`;
  }
  if (random.chance(0.2) && /^int[2-8]$/.test(spec.dtype) && spec.symmetric !== false) spec.scale_sign = 'signed';
  const canRefit = /^u?int[2-8]$/.test(spec.dtype) && /^per_(channel|group)$/.test(spec.qscheme);
  if (random.chance(0.2) && canRefit) spec.scale_refit = 'always';
  if (random.chance(0.1) && (canRefit || spec.scale_format === 'e8m0')) spec.scale_refit = 'calibrated';
  return spec;
}

/** What may stand in a config, without asking whether the parts go together. */
function anySpec(random) {
  const dtype = random.pick([...integers, ...integers, ...floats, 'mx']);
  if (dtype === 'mx') {
    const spec = mx(random, ['fp8_e4m3', 'fp8_e5m2', 'fp6_e3m2', 'fp6_e2m3', 'fp4', 'fp4']);
    if (random.chance(0.3)) spec.group_size = random.pick([16, 32, 64]);
    return spec;
  }
  const spec = { dtype, qscheme: random.pick(['per_tensor', 'per_channel', 'per_group', 'per_group', 'per_block']) };
  if (spec.qscheme === 'per_channel') spec.ch_axis = random.pick([0, 0, 0, 1]);
  if (spec.qscheme === 'per_group')
    Object.assign(spec, { ch_axis: random.pick([-1, 1, -1]), group_size: random.pick(groupSizes) });
  if (spec.qscheme === 'per_block') spec.block_size = [random.pick([8, 16, 128]), random.pick([8, 32, 128])];
  if (integers.includes(dtype)) {
    if (dtype.startsWith('u')) spec.symmetric = random.chance(0.1);
    else if (random.chance(0.7)) spec.symmetric = random.chance(0.5);
    if (random.chance(0.15)) spec.grid = { pads_groups: true };
  } else if (random.chance(0.3)) spec.scale_format = random.pick(['e8m0', 'e4m3']);
  return spec;
}

/** Presets that a format stores. */
export const presetsOfFormat = { awq: /^uint4/, gptq: /^u?int[48]_?(wo|$)/, onnx: /^u?int[48]|^int8/ };

/** Names of algorithms and where they stand. */
const algorithms = {
  pre_quant_opt_config: ['smoothquant', 'cle', 'rotation'],
  algo_config: ['gptq', 'gptq', 'awq', 'gptaq', 'qronos', 'gpfq'],
};

/** Of a rotation of llama: which norms go before which layers is known of the family. */
const scaling_layers = { first_layer: [], middle_layers: [], last_layer: [] };

/** {config, spec: the one spec of all weights or null, isNearest: whether no algorithm runs, needsTokens}. `canRun`: those that need tokens, too. */
export function randomConfig(random, presets, canRun, format) {
  if (random.chance(0.3)) {
    const preset = random.pick(presets.filter((name) => presetsOfFormat[format]?.test(name) ?? true));
    return { config: preset, spec: null, isNearest: true, needsTokens: false };
  }
  const spec = randomSpec(random, format);
  const config = { global_quant_config: { weight: spec } };
  if (random.chance(0.75)) config.indivisible_groups = 'fallback';
  if (random.chance(0.85)) config.default_exclusions = true;
  else if (random.chance(0.5)) config.exclude = random.pick([['lm_head'], ['lm_head', '*o_proj'], ['*.0.*']]);
  let single = spec;
  if (random.chance(0.25)) {
    config.layer_quant_config = {
      [random.pick(['*down_proj', '*q_proj', '*w2', '*layers.1.*'])]: { weight: randomSpec(random, format) },
    };
    single = null;
  }
  if (random.chance(0.1)) {
    config.layer_type_quant_config = { Embedding: { weight: randomSpec(random, format) } };
    single = null;
  }
  let needsTokens = false;
  if (canRun && random.chance(0.45)) {
    const place = random.pick(Object.keys(algorithms));
    const name = random.pick(algorithms[place]);
    config[place] = [{ name }];
    if (name === 'rotation')
      Object.assign(config[place][0], { scaling_layers, r1: true, r2: random.chance(0.5), r4: false });
    // Columns in the order of their inputs' energy, which the file's index of groups undoes.
    if (place === 'algo_config' && name !== 'awq' && random.chance(0.6))
      config[place][0][name === 'gpfq' ? 'act_order' : 'desc_act'] = true;
    needsTokens = !['cle', 'rotation'].includes(name);
    return { config, spec: null, isNearest: false, needsTokens };
  }
  // Symmetric unsigned integers have no negative values, which a warning says.
  const losesSign = spec.dtype.startsWith('u') && spec.symmetric;
  // A signed scale reaches the other end of its range one step short.
  const isPlain =
    !spec.observer_cls && !spec.scale_sign && !spec.scale_refit && !config.indivisible_groups && !losesSign;
  return { config, spec: isPlain ? single : null, isNearest: true, needsTokens };
}
