// Our AWQ and GPTQ folders, decoded by load_words.py: every weight is the library's own dequantized values. A line per
// case; exit code 1 when a value is not the very same.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer, perGroup, quarkConfig } from '../../dist/node.js';
import { main, root } from '../setup/command.mjs';
import { python } from './peers.mjs';
import { readModel, writeFloats } from './safetensors_file.mjs';

const input = join(root, 'tests/files/tiny-llama');
const cases = {
  'awq-64': ['awq', quarkConfig(perGroup('uint4', 64, { symmetric: false }))],
  'awq-32-hqq': ['awq', quarkConfig(perGroup('uint4', 32, { symmetric: false, observer_cls: 'HQQ' }))],
  'awq-all': ['awq', quarkConfig(perGroup('uint4', 64, { symmetric: false }), { exclude: [] })],
  'gptq-128': ['gptq', 'int4_wo_128'],
  'gptq-8-bit': ['gptq', quarkConfig(perGroup('int8', 64))],
  'gptq-v2': ['gptq', quarkConfig(perGroup('uint4', 32, { symmetric: false }))],
  'gptq-v2-8-bit': ['gptq', quarkConfig(perGroup('uint8', 64, { symmetric: false }))],
  'gptq-2-bit': ['gptq', quarkConfig(perGroup('int2', 32))],
  'gptq-3-bit': ['gptq', quarkConfig(perGroup('int3', 32))],
  'gptq-v2-2-bit': ['gptq', quarkConfig(perGroup('uint2', 64, { symmetric: false }))],
  'gptq-v2-3-bit': ['gptq', quarkConfig(perGroup('uint3', 32, { symmetric: false }))],
  'gptq-mixed': [
    'gptq',
    quarkConfig(perGroup('int4', 32), { layer_quant_config: { '*down_proj': { weight: perGroup('int8', 64) } } }),
  ],
  'gptq-32-mse': ['gptq', quarkConfig(perGroup('int4', 32, { observer_cls: 'PerGroupMSE' }))],
};

main(async () => {
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-words-'));
  const quantizer = await createQuantizer({ threads: 1 });
  try {
    const source = readModel(input);
    const model = await quantizer.open(input);
    const folders = [];
    for (const [name, [format, config]] of Object.entries(cases)) {
      const folder = join(work, name);
      mkdirSync(folder);
      await quantizer.quantizeModel(model, config, { target: join(folder, 'quantized'), format });
      const dequantized = new Map();
      for (const { name: weight, action, spec } of (await quantizer.plan(model, config, { format })).tensors) {
        if (action !== 'quantize') continue;
        const tensor = source.get(weight);
        dequantized.set(weight, { shape: tensor.shape, data: quantizer.dequantize(quantizer.quantize(tensor, spec)) });
      }
      writeFloats(join(folder, 'dequantized.safetensors'), dequantized);
      folders.push(folder);
    }
    await model.close();
    const outcomes = python('load_words.py', folders, folders.length);
    let failed = 0;
    for (const { case: name, error, weights, words, differing } of outcomes) {
      const problem =
        error ??
        (differing.length > 0 ? `${differing.length} of ${weights} weights differ, first ${differing[0]}` : null);
      if (problem || words !== weights) ++failed;
      process.stdout.write(`${name.padEnd(14)} ${problem ? `FAILED ${problem}` : `ok, ${weights} weights`}\n`);
    }
    process.stdout.write(`awq, gptq: ${folders.length - failed} passed, ${failed} failed\n`);
    return failed > 0 ? 1 : 0;
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true, force: true });
  }
});
