// For each code of a run or a comparison: what has to be run for it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { convolutions, twoLayers } from '../onnx/model.mjs';
import { files, tinyLlama } from '../scratch.mjs';
import { mixtureTokens, writeTinyMixture } from '../tiny_mixture.mjs';
import { noise } from '../written_model.mjs';
import { group, quark, weight } from './config_cases.mjs';

const { data } = readTensors(join(files, 'tiny-llama-reference/calib_tokens.safetensors')).get('input_ids');
const tokens = { data: Int32Array.from(data.subarray(0, 256)), shape: [1, 256] };
const short = { rows: [[256, 84, 104, 101]] };
const repeated = { data: new Int32Array(1024).fill(101), shape: [8, 128] };
const algorithm = (name, rest = {}) => quark(group(), { exclude: ['lm_head'], algo_config: [{ name, ...rest }] });
const rotation = {
  name: 'rotation',
  scaling_layers: { first_layer: [], middle_layers: [], last_layer: [] },
  r1: true,
  r2: false,
};

/** An importance matrix of one weight, as llama-imatrix wrote them before GGUF: counts, the name, one value a column. */
function imatrixOf(name, columns) {
  const bytes = Buffer.alloc(16 + name.length + 4 * columns);
  bytes.writeInt32LE(1, 0);
  bytes.writeInt32LE(name.length, 4);
  bytes.write(name, 8);
  bytes.writeInt32LE(1, 8 + name.length);
  bytes.writeInt32LE(columns, 12 + name.length);
  for (let i = 0; i < columns; ++i) bytes.writeFloatLE(1 + i, 16 + name.length + 4 * i);
  return bytes;
}

/** What a calibrated run says. */
const calibrated = async (c, config, calibration, rest = {}) =>
  (await c.run(tinyLlama, config, { format: 'fake-quantized', calibration: { tokens: calibration }, ...rest })).report
    .diagnostics;

export const runCases = {
  'importance-used': (c) => calibrated(c, 'q4_k_m', tokens, { format: 'gguf' }),
  'importance-unused': (c) => c.plan(tinyLlama, 'q8_0', { gguf: { imatrix: imatrixOf('blk.0.attn_q.weight', 256) } }),
  'calibration-short': (c) => calibrated(c, algorithm('gptq'), short),
  'calibration-poor': (c) => calibrated(c, algorithm('gptq'), repeated),
  'calibration-worse': (c) => calibrated(c, algorithm('gpfq'), short),
  'rounded-to-nearest': (c) => calibrated(c, algorithm('gpfq', { on_worse: 'nearest' }), short),
  'calibration-unused': (c) => calibrated(c, quark(weight()), tokens),
  // An embedding of zeros: every layer sees zeros.
  'calibration-blind': async (c) => {
    const tensors = Object.fromEntries(readTensors(join(tinyLlama, 'model.safetensors')));
    tensors['model.embed_tokens.weight'].data.fill(0);
    const settings = JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
    const options = { format: 'fake-quantized', calibration: { tokens: short } };
    return (await c.run(c.modelFolder(tensors, settings), algorithm('gptq'), options)).report.diagnostics;
  },
  'calibration-unseen': async (c) => {
    const source = writeTinyMixture(join(c.folder(), 'mixture'));
    const config = quark(group(), { exclude: ['lm_head', '*.gate'], algo_config: [{ name: 'gptq' }] });
    const calibration = { tokens: mixtureTokens(16) };
    return (await c.run(source, config, { format: 'fake-quantized', calibration })).report.diagnostics;
  },
  rotated: (c) => calibrated(c, quark(group(), { exclude: ['lm_head'], algo_config: [rotation] }), short),
  'not-resumable': async (c) => {
    const target = join(c.folder(), 'out');
    return (await c.into(tinyLlama, algorithm('gptq'), { target, resume: true, calibration: { tokens: short } }))
      .diagnostics;
  },
  'files-left': async (c) => {
    const source = c.without('generation_config.json');
    writeFileSync(join(source, 'adapter_model.safetensors'), 'x');
    return (await c.into(source, 'int8', { target: join(c.folder(), 'out') })).diagnostics;
  },
  'config-not-written': async (c) => {
    const target = join(c.folder(), 'out.safetensors');
    return (await c.into(tinyLlama, 'int4_wo_32', { target })).diagnostics;
  },
  'sqnr-low': async (c) => {
    const tiny = noise(64 * 64, 7).map((value) => value * 1e-9);
    const source = { 'a.weight': { dtype: 'F32', shape: [64, 64], data: tiny } };
    return (await c.run(source, quark(group()), { format: 'fake-quantized' })).report.diagnostics;
  },
  'nothing-compared': (c) => c.compared(twoLayers().bytes, convolutions()),
  'tensor-not-compared': (c) => c.compared(twoLayers().bytes, convolutions()),
  'reference-quantized': async (c) => {
    const target = join(c.folder(), 'out');
    await c.into(tinyLlama, 'int8', { target });
    return c.compared(target, target);
  },
};
