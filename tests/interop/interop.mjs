// Our compressed-tensors folders in transformers. Each case is an input model and a config, written in turn by the command
// line and by the library; load_compressed_tensors.py loads it and compares weights and logits with the library's own
// dequantized values. A line per case; exit code 1 when a model does not load cleanly or a value is not the very same.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';
import { main, root } from '../setup/command.mjs';
import { python } from './peers.mjs';
import { readModel, writeFloats } from './safetensors_file.mjs';

const inputs = { f32: 'tests/files/tiny-llama', bf16: 'tests/files/tiny-llama/bf16' };
const tokens = 'tests/files/tiny-llama-reference/eval_tokens.safetensors';

/** Linear layers but the head, weights only. */
const weightOnly = (weight) => ({ global_quant_config: { weight }, exclude: ['lm_head'] });
const perChannel = { qscheme: 'per_channel', ch_axis: 0, observer_cls: 'PerChannelMinMaxObserver', is_dynamic: false };
const configs = {
  int4_wo_128: 'int4_wo_128',
  int4_wo_32: 'int4_wo_32',
  uint4_wo_32: 'uint4_wo_32',
  mxfp4: 'mxfp4',
  mxfp8: 'mxfp8',
  nvfp4: 'nvfp4',
  fp8_blocks_64: weightOnly({ dtype: 'fp8_e4m3', qscheme: 'per_block', block_size: [64, 64] }),
  int8_channel: weightOnly({
    dtype: 'int8',
    symmetric: true,
    round_method: 'half_even',
    ...perChannel,
  }),
  fp8_channel: weightOnly({
    dtype: 'fp8_e4m3',
    symmetric: true,
    round_method: 'half_even',
    ...perChannel,
  }),
  int8_static: {
    global_quant_config: {
      weight: { dtype: 'int8', symmetric: true, round_method: 'half_even', ...perChannel },
      input_tensors: {
        dtype: 'int8',
        symmetric: true,
        round_method: 'half_even',
        qscheme: 'per_tensor',
        observer_cls: 'PerTensorMinMaxObserver',
        is_dynamic: false,
      },
    },
    exclude: ['lm_head'],
  },
};
const isStatic = (config) => config.global_quant_config?.input_tensors?.is_dynamic === false;

const fp4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
const fp4Value = (code) => (code & 8 ? -1 : 1) * fp4[code & 7];
/** Scales are positive and finite. */
const e4m3Value = (code) => (code < 8 ? code / 512 : (8 + (code & 7)) * 2 ** ((code >> 3) - 10));

/**
 * What an NVFP4 file holds, decoded here: its scales are divided by the reciprocal of the tensor's scale, while a single
 * tensor is quantized with the product, so that codes differ at ties.
 */
function nvfp4Values(stored, name, group) {
  const packed = stored.get(`${name}_packed`).data;
  const scales = stored.get(`${name}_scale`).data;
  const [reciprocal] = stored.get(`${name}_global_scale`).data;
  return Float32Array.from({ length: packed.length * 2 }, (_, i) => {
    const code = i % 2 === 0 ? packed[i >> 1] & 15 : packed[i >> 1] >> 4;
    return fp4Value(code) * Math.fround(e4m3Value(scales[Math.floor(i / group)]) / reciprocal);
  });
}

/** Writes a case folder: quantized/, source/ (a link) and dequantized.safetensors. */
async function write(quantizer, folder, input, config, fromCommandLine) {
  mkdirSync(folder);
  symlinkSync(join(root, input), join(folder, 'source'));
  const target = join(folder, 'quantized');
  const model = await quantizer.open(join(root, input));
  if (fromCommandLine) {
    const file = join(folder, 'config.json');
    if (typeof config === 'object') writeFileSync(file, JSON.stringify(config));
    const choice = typeof config === 'string' ? ['--preset', config] : ['--config', file];
    const calibration = isStatic(config) ? ['--calibration', tokens] : [];
    const args = ['dist/cli.js', 'quantize', input, ...choice, ...calibration, '-o', target, '--quiet', '--json'];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });
    if (status !== 0) throw new Error(`wasmquant quantize ended with exit code ${status}: ${stderr}`);
  } else {
    const calibration = isStatic(config) ? { tokens: await quantizer.open(join(root, tokens)) } : undefined;
    await quantizer.quantizeModel(model, config, { target, format: 'compressed-tensors', calibration });
    await calibration?.tokens.close();
  }

  const { tensors } = await quantizer.plan(model, config, { format: 'compressed-tensors' });
  await model.close();
  const source = readModel(join(root, input));
  const stored = readModel(target);
  const dequantized = new Map();
  for (const { name, action, spec } of tensors) {
    if (action !== 'quantize') continue;
    const tensor = source.get(name);
    const data =
      spec.scale_format === 'e4m3'
        ? nvfp4Values(stored, name, spec.group_size)
        : quantizer.dequantize(quantizer.quantize(tensor, spec));
    dequantized.set(name, { shape: tensor.shape, data });
  }
  writeFloats(join(folder, 'dequantized.safetensors'), dequantized);
}

/** What is wrong, or null. */
function problemOf(outcome) {
  if (outcome.error) return outcome.error;
  const { weights, loading, not_recognised: ignored, weights_differing: differing } = outcome;
  if (weights === 0) return 'no weight was quantized';
  if (outcome.case.endsWith('_static') && outcome.static_inputs !== weights)
    return `${outcome.static_inputs} layers of ${weights} have scales of their inputs`;
  if (Object.keys(loading).length > 0) return `keys: ${JSON.stringify(loading).slice(0, 200)}`;
  if (ignored.length > 0)
    return `${ignored.length} of ${weights} weights have no scheme in the loader, first ${ignored[0]}`;
  if (differing.length > 0) return `${differing.length} of ${weights} weights differ, first ${differing[0]}`;
  if (!outcome.logits_equal)
    return `weights equal, logits in ${outcome.dtype} differ by up to ${outcome.logits_difference}`;
  return null;
}

main(async () => {
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-interop-'));
  const quantizer = await createQuantizer({ threads: 1 });
  try {
    const folders = [];
    for (const [inputName, input] of Object.entries(inputs)) {
      for (const [configName, config] of Object.entries(configs)) {
        const folder = join(work, `${inputName}-${configName}`);
        await write(quantizer, folder, input, config, folders.length % 2 === 0);
        folders.push(folder);
      }
    }

    const outcomes = python('load_compressed_tensors.py', [tokens, ...folders], folders.length);
    process.stdout.write('transformers with compressed-tensors, against our dequantized weights\n');
    let failed = 0;
    for (const outcome of outcomes) {
      const problem = problemOf(outcome);
      if (problem) failed++;
      const text = problem ?? `${outcome.weights} weights and the logits are the same values (${outcome.dtype})`;
      process.stdout.write(`${outcome.case.padEnd(20)} ${problem ? 'FAILED' : 'ok'}  ${text}\n`);
    }
    process.stdout.write(`compressed-tensors: ${outcomes.length - failed} passed, ${failed} failed\n`);
    return failed > 0 ? 1 : 0;
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true, force: true });
  }
});
