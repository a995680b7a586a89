// The folder that readers of the guides are told they have, and programs run in it.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { weights, writeSafetensors } from '../bench/model_files.mjs';
import { twoLayers } from '../node/onnx/model.mjs';
import { tokensOf } from '../node/tiny_llama.mjs';
import { safetensors } from '../node/written_model.mjs';
import { install } from '../package/packed.mjs';
import { root } from '../setup/command.mjs';

const sample = join(root, 'tests/files/tiny-llama');
/** The sample's tokens are bytes: enough for so many rows of 256. */
const prose = (rows) =>
  'And the evening and the morning were the first day. In the beginning was the word. '.repeat(Math.ceil(rows * 3.2));

const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
const int8 = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const inputs = { dtype: 'int8', qscheme: 'per_tensor', symmetric: true };
const exclude = ['lm_head'];
/** Configs that snippets name. */
const configs = {
  'awq.json': { global_quant_config: { weight: int4 }, exclude, algo_config: [{ name: 'awq' }] },
  'gptq.json': { global_quant_config: { weight: int4 }, exclude, algo_config: [{ name: 'gptq' }] },
  'w8a8.json': { global_quant_config: { weight: int8, input_tensors: inputs }, exclude },
  'my-mixture.json': { dialect: 'gguf', recipe: 'q4_k_m', layers: { '*.down_proj': 'q6_k' } },
  'my-config.json': { global_quant_config: { weight: int4 }, exclude },
};

/**
 * The folder that readers are told they have: the package, my-model (the sample), tokens, texts, activations, an ONNX
 * model by itself and in a folder, configs; in `later` what a first run makes of it.
 */
export function reader(packed) {
  const app = install(packed, 'reader');
  const tool = 'node_modules/@huggingface/tokenizers';
  cpSync(join(root, tool), join(app, tool), { recursive: true });
  cpSync(sample, join(app, 'my-model'), { recursive: true });
  const tokens = { input_ids: { dtype: 'I32', ...tokensOf('validation', 16) } };
  writeFileSync(join(app, 'tokens.safetensors'), safetensors(tokens));
  for (const [name, rows] of Object.entries({ 'text.txt': 16, 'sample.txt': 5, 'held-out.txt': 5 }))
    writeFileSync(join(app, name), prose(rows));
  writeFileSync(join(app, 'model.onnx'), twoLayers().bytes);
  for (const [name, config] of Object.entries(configs)) writeFileSync(join(app, name), JSON.stringify(config));
  const { tensors } = JSON.parse(command(program, ['inspect', 'my-model', '--json'], app));
  const linear = tensors.filter(({ layerType, layer }) => layerType === 'Linear' && layer !== 'lm_head');
  writeFileSync(join(app, 'layers.txt'), linear.map(({ layer, shape }) => `${layer} ${shape[1]}\n`).join(''));
  const inputs = linear.map(({ layer, shape }) => ({ name: `${layer}.input`, shape: [4, shape[1]] }));
  writeSafetensors(join(app, 'activations.safetensors'), inputs, weights(4 * 1024, 3));
  const make = ['quantize', 'my-model', '-o', 'later/my-model-int4', '--preset', 'int4_wo_128'];
  command(program, make, app);
  return app;
}

/** A fresh copy of the reader's folder for one snippet. */
export function copyOf(app, packed, names = []) {
  const folder = mkdtempSync(join(packed.folder, 'snippet-'));
  for (const name of readdirSync(app))
    if (name !== 'node_modules' && name !== 'later') cpSync(join(app, name), join(folder, name), { recursive: true });
  symlinkSync(join(app, 'node_modules'), join(folder, 'node_modules'));
  if (names.includes('quantized') || names.includes('my-model-int4'))
    cpSync(join(app, 'later'), folder, { recursive: true });
  return folder;
}

/** Runs a program to its end; returns what it printed. Throws with everything that it said when it fails. */
export function command(program, args, cwd, env = process.env) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, env, encoding: 'utf8', timeout: 300_000 });
  if (error) throw error;
  if (status !== 0) throw new Error(`exit code ${status}\n${stdout}${stderr}`);
  return stdout;
}

const commandLines = (code) => code.split('\n').filter((line) => line.startsWith('npx wasmquant'));
/** The program that npx starts, without npm's half a second; that npx finds it is seen by tests/package. */
export const program = 'node_modules/.bin/wasmquant';
const installed = (line) => ['-c', line.replace(/^npx wasmquant/, program)];

/** Runs the lines that call the packed command; returns how many there were. */
export function runShell(app, code) {
  const lines = commandLines(code);
  for (const line of lines) command('bash', installed(line), app);
  return lines.length;
}

/** Each line that calls the command has to fail and to say `text`. */
export function refusal(app, code, text) {
  const lines = commandLines(code);
  if (lines.length === 0) throw new Error('no line calls wasmquant');
  for (const line of lines) {
    const { status, stdout, stderr } = spawnSync('bash', installed(line), { cwd: app, encoding: 'utf8' });
    if (status === 0) throw new Error(`${line} is not refused`);
    if (!`${stdout}${stderr}`.includes(text)) throw new Error(`${line} does not say "${text}":\n${stdout}${stderr}`);
  }
  return lines.length;
}
