// What the native tool and the library make of a model, the same way: their files must be equal to the byte.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { captureActivations } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { root } from '../../setup/command.mjs';
import { ort } from './peers.mjs';

const ownTool = process.env.WASMQUANT_ONNX_TOOL ?? join(root, 'build/release/wasmquant_onnx_tool');

export function runTool(...args) {
  const { error, status, stdout, stderr } = spawnSync(ownTool, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (error) throw error;
  if (status !== 0) throw new Error(stderr.trim().split('\n').at(-1));
  return { stdout: stdout.trim(), stderr };
}
export const own = (...args) => runTool(...args).stdout;

/** The weights that the tool lists. */
export const weightsOf = (path) =>
  own('list', path)
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [name, layer, type] = line.split(' ');
      return { name, layer, type, isKept: line.endsWith(' kept') };
    });

const layerTypes = [
  'Linear',
  'Conv1d',
  'Conv2d',
  'ConvTranspose1d',
  'ConvTranspose2d',
  'Embedding',
  'LSTM',
  'GRU',
  'RNN',
];

/** The config that says what the words of a form say to the tool. */
function configOf(words) {
  const { dtype, scheme = 'per_tensor', group = '32', symmetric = '1', style, only, static: values } = words;
  const weight = {
    dtype,
    qscheme: scheme,
    symmetric: symmetric === '1',
    ...(scheme === 'per_channel' && { ch_axis: 0 }),
    ...(scheme === 'per_group' && { ch_axis: 1, group_size: Number(group) }),
  };
  const input_tensors = { dtype: 'uint8', qscheme: 'per_tensor', symmetric: false, is_dynamic: true };
  const layer = { weight, ...(style === 'dynamic' && { input_tensors }) };
  const configs = layerTypes
    .filter((type) => !only || only.split(',').includes(type))
    .map((type) => [type, { ...layer, ...(values && productTypes.includes(type) && staticOf(values)) }]);
  return { layer_type_quant_config: Object.fromEntries(configs), global_quant_config: {} };
}

const productTypes = ['Linear', 'Conv1d', 'Conv2d', 'ConvTranspose1d', 'ConvTranspose2d'];
/** `dtype` of inputs, or of inputs and outputs. */
function staticOf(values) {
  const [inputs, outputs] = values.split(',').map((dtype) => ({
    dtype,
    qscheme: 'per_tensor',
    symmetric: dtype === 'int8',
    is_dynamic: false,
  }));
  return { input_tensors: inputs, ...(outputs && { output_tensors: outputs }) };
}

/**
 * What goes into the layers of a model, and out of them, kept; and what observers find in it, as the tool reads it. Layers in
 * nested graphs give nothing to capture, and stay.
 */
export async function captured(quantizer, path, feeds, values) {
  const { input_tensors: input, output_tensors: output } = staticOf(values);
  const specs = { input, output };
  const observers = new Map();
  const batches = [];
  for await (const batch of captureActivations(ort, path, feeds)) {
    const spec = specs[batch.role];
    if (!spec) continue;
    const data = batch.data.slice();
    batches.push({ ...batch, data });
    const key = `${batch.layer} ${batch.role} ${spec.dtype}`;
    if (!observers.has(key)) observers.set(key, quantizer.createObserver(spec));
    observers.get(key).update({ data, shape: batch.shape });
  }
  const lines = [...observers].map(([key, observer]) => {
    const { scale, zeroPoint } = observer.finish();
    observer[Symbol.dispose]();
    return `${key} ${scale[0]} ${zeroPoint[0]}\n`;
  });
  return { batches, lines: lines.join('') };
}

/** What the library makes of it: its files must be the tool's, to the byte. `left`: what the tool said of weights that stay. */
export async function quantizeByLibrary(quantizer, path, spec, target, left, calibration) {
  const words = Object.fromEntries(spec.split(' ').map((word) => word.split('=')));
  const stays = weightsOf(path).filter(({ name }) => left.includes(`\n${name}: `));
  const config = { ...configOf(words), exclude: [...new Set(stays.map(({ layer }) => layer))] };
  const folder = `${target}.library`;
  mkdirSync(folder, { recursive: true });
  const output = join(folder, basename(target));
  const onnx = { qdq: words.style === 'dequantize_linear', externalData: 'inline' in words };
  const model = await quantizer.open(path);
  const report = await quantizer.quantizeModel(model, config, {
    target: output,
    overwrite: true,
    onnx,
    ...(calibration && { calibration }),
  });
  await model.close();
  const names = report.files.map(({ name }) => name);
  for (const name of names) {
    if (!readFileSync(join(folder, name)).equals(readFileSync(join(target, '..', name))))
      throw new Error(`${name}: the library wrote other bytes than the native tool`);
  }
  const worst = Math.min(...report.tensors.flatMap(({ error }) => error?.sqnrDb ?? []));
  return { output, worst };
}
