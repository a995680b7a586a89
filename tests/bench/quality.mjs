// What quantization costs tiny-llama, in bits per byte on its validation text: rounding to nearest beside observers that
// search and algorithms that calibrate, written to disk and read back.
//   node tests/bench/quality.mjs [--observers] [--json] [--only PART] [--threads N]
// PART: of a row's name, such as "int4 g128". --observers: every observer of weights instead, at int4 g128 and per
// channel, with the error of the weights besides. Weighted ones know the mean square of each input channel.
// Sizes are bits per weight with scales. Standard error of a difference from fp32: 0.001 to 0.002 at four bits.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createQuantizer } from '../../dist/node.js';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean' },
    observers: { type: 'boolean' },
    only: { type: 'string', default: '' },
    threads: { type: 'string', default: '2' },
  },
});

const groups = (dtype, group_size) => ({ dtype, qscheme: 'per_group', group_size, ch_axis: -1, symmetric: true });
const rows = (dtype) => ({ dtype, qscheme: 'per_channel', ch_axis: 0, symmetric: true });
const schemes = {
  'int4 g32': groups('int4', 32),
  'int4 g128': groups('int4', 128),
  'int4 channel': rows('int4'),
  'int3 g32': groups('int3', 32),
};
const mxfp4 = { ...groups('fp4', 32), scale_format: 'e8m0', observer_cls: 'PerBlockMXObserver' };

const gptq = { name: 'gptq' };
const awq = { name: 'awq' };
const smooth = { name: 'smoothquant', alpha: 0.5 };
const scaling_layers = { first_layer: [], middle_layers: [], last_layer: [] };
const rotation = { name: 'rotation', r2: true, scaling_layers };
const [gptaq, qronos, gpfq, cle, autoSmooth] = ['gptaq', 'qronos', 'gpfq', 'cle', 'autosmoothquant'].map((name) => ({
  name,
}));
const perToken = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 1, symmetric: true, is_dynamic: true };

/** Rows of the table: scheme, method, config beside the weight's spec, inputs of linear layers. */
function* table() {
  for (const [scheme, weight] of Object.entries(schemes)) {
    const [mse, hqq] = weight.qscheme === 'per_group' ? ['PerGroupMSE', 'HQQ'] : ['PerChannelMSE', 'PerChannelHQQ'];
    const search = (observer) => ({ ...weight, observer_cls: `${observer}Observer` });
    yield { scheme, method: 'nearest', weight };
    yield { scheme, method: 'MSE', weight: search(mse) };
    yield { scheme, method: 'HQQ', weight: search(hqq) };
    if (scheme === 'int4 g128') yield { scheme, method: 'auto, as many bytes', weight, isAuto: true };
    yield { scheme, method: 'AWQ', weight, algo_config: [awq] };
    yield { scheme, method: 'GPTQ', weight, algo_config: [gptq] };
    yield { scheme, method: 'AWQ, GPTQ', weight, algo_config: [awq, gptq] };
    yield { scheme, method: 'SmoothQuant, GPTQ', weight, pre_quant_opt_config: [smooth], algo_config: [gptq] };
    yield { scheme, method: 'rotation', weight, pre_quant_opt_config: [rotation] };
    yield { scheme, method: 'rotation, GPTQ', weight, pre_quant_opt_config: [rotation], algo_config: [gptq] };
    yield { scheme, method: 'GPTAQ', weight, algo_config: [gptaq] };
    yield { scheme, method: 'Qronos', weight, algo_config: [qronos] };
    yield { scheme, method: 'GPFQ', weight, algo_config: [gpfq] };
    yield { scheme, method: 'AWQ, GPTAQ', weight, algo_config: [awq, gptaq] };
    yield { scheme, method: 'AWQ, Qronos', weight, algo_config: [awq, qronos] };
    yield { scheme, method: 'CLE', weight, pre_quant_opt_config: [cle] };
  }
  yield { scheme: 'mxfp4', method: 'nearest', weight: mxfp4 };
  yield { scheme: 'mxfp4', method: 'GPTQ', weight: mxfp4, algo_config: [gptq] };
  yield { scheme: 'mxfp4', method: 'Qronos', weight: mxfp4, algo_config: [qronos] };
  yield { scheme: 'mxfp4', method: 'rotation', weight: mxfp4, pre_quant_opt_config: [rotation] };
  yield {
    scheme: 'mxfp4',
    method: 'rotation, GPTQ',
    weight: mxfp4,
    pre_quant_opt_config: [rotation],
    algo_config: [gptq],
  };
  yield { scheme: 'W8A8', method: 'nearest', weight: rows('int8'), activations: 'int8' };
  yield {
    scheme: 'W8A8',
    method: 'SmoothQuant',
    weight: rows('int8'),
    pre_quant_opt_config: [smooth],
    activations: 'int8',
  };
  yield {
    scheme: 'W8A8',
    method: 'rotation',
    weight: rows('int8'),
    pre_quant_opt_config: [rotation],
    activations: 'int8',
  };
  yield {
    scheme: 'W8A8',
    method: 'rotation with R4',
    weight: rows('int8'),
    pre_quant_opt_config: [{ ...rotation, r4: true }],
    activations: 'int8',
  };
  yield {
    scheme: 'W8A8',
    method: 'AutoSmoothQuant',
    weight: rows('int8'),
    input_tensors: perToken,
    algo_config: [autoSmooth],
    activations: 'int8',
  };
}

/** Observers of weights by scheme; those of several batches that are min-max on a weight are left out. */
const observers = {
  'int4 g128': ['PerGroupMinMax', 'PerGroupMSE', 'HQQ'],
  'int4 channel': [
    'PerChannelMinMax',
    'PerChannelMSE',
    'PerChannelHQQ',
    'PerChannelRangeMSE',
    'PerChannelRangeCrossEntropy',
    'PerChannelThresholdMSE',
    'PerChannelPowOf2MinMax',
    'PerChannelPowOf2MinMSE',
    'PerChannelLSQ',
  ],
};
function* observerTable() {
  for (const [scheme, names] of Object.entries(observers))
    for (const method of names) {
      const weight = { ...schemes[scheme], observer_cls: `${method}Observer` };
      yield { scheme, method, weight };
      if (!/(Group|Channel)MSE$|HQQ$/.test(method)) continue;
      yield { scheme, method: `${method}, weighted`, weight: { ...weight, observer_options: { weighted: true } } };
    }
}

const files = join(import.meta.dirname, '../files');
const folder = mkdtempSync(join(tmpdir(), 'wasmquant-quality-'));
const quantizer = await createQuantizer({ threads: Number(options.threads) });
const model = await quantizer.open(join(files, 'tiny-llama'));
const tokens = (name) => quantizer.open(join(files, `tiny-llama-reference/${name}_tokens.safetensors`));
const [calibration, validation] = [await tokens('calib'), await tokens('validation')];

async function measure({ scheme, method, weight, input_tensors, isAuto = false, activations, ...algorithms }) {
  const uniform = {
    global_quant_config: { weight, ...(input_tensors && { input_tensors }) },
    exclude: ['lm_head'],
    indivisible_groups: 'fallback',
    ...algorithms,
  };
  const target = join(folder, 'out');
  const format = 'quark';
  const targetBytes = (await quantizer.plan(model, uniform, { format })).totals.bytesAfter;
  const config = isAuto
    ? (
        await (
          await quantizer.languageModel(model)
        ).autoConfig({ targetBytes, calibration: { tokens: calibration }, format })
      ).config
    : uniform;
  const report = await quantizer.quantizeModel(model, config, {
    target,
    format,
    overwrite: true,
    ...((Object.keys(algorithms).length > 0 || weight.observer_options) && { calibration }),
  });
  const written = await quantizer.open(target);
  const { bitsPerByte } = await quantizer.languageModel(written).evaluate({
    tokens: validation,
    activations: activations ?? 'float32',
  });
  await written.close();
  const { bitsPerWeight } = report.totals;
  return { scheme, method, bitsPerByte, bitsPerWeight, seconds: report.durationMs / 1000, sqnrDb: meanSqnr(report) };
}

/** Mean over the quantized weights, in dB. */
function meanSqnr({ tensors }) {
  const errors = tensors.flatMap(({ action, error }) => (action === 'quantize' && error ? [error.sqnrDb] : []));
  return errors.reduce((sum, sqnr) => sum + sqnr, 0) / errors.length;
}

const found = [];
const show = (scheme, method, ...numbers) => {
  if (options.json) return;
  process.stdout.write(
    `${scheme.padEnd(14)}${method.padEnd(options.observers ? 30 : 20)}${numbers.map((text) => text.padStart(10)).join('')}\n`,
  );
};
show('scheme', 'method', 'bits/byte', 'bits', 'seconds', ...(options.observers ? ['SQNR dB'] : []));
try {
  if (options.only === '') {
    const { bitsPerByte } = await quantizer.languageModel(model).evaluate({ tokens: validation });
    found.push({ scheme: 'fp32', method: '', bitsPerByte, bitsPerWeight: 32, seconds: 0 });
    show('fp32', '', bitsPerByte.toFixed(4), '32');
  }
  for (const row of options.observers ? observerTable() : table()) {
    if (!`${row.scheme} ${row.method}`.includes(options.only)) continue;
    const result = await measure(row);
    found.push(result);
    const { bitsPerByte, bitsPerWeight, seconds, sqnrDb } = result;
    const error = options.observers ? [sqnrDb.toFixed(2)] : [];
    show(row.scheme, row.method, bitsPerByte.toFixed(4), bitsPerWeight.toFixed(3), seconds.toFixed(1), ...error);
  }
  if (options.json) process.stdout.write(`${JSON.stringify(found, null, 2)}\n`);
} finally {
  await quantizer[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}
