// Our ONNX folders in transformers.js: a model's folder quantized once for each of its dtypes, into one folder, and loaded
// by AutoTokenizer and AutoModelForCausalLM, with no network. Logits must be those of onnxruntime-node on the same file,
// close to the float model's, and generate() must run. A line per dtype; exit code 1 when one fails.
// The model is two layers with the words of tiny-llama, or tiny-llama itself where WASMQUANT_TINY_LLAMA_ONNX is its path.
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createQuantizer } from '../../dist/node.js';
import { wordModel } from '../node/onnx/model.mjs';
import { main, root } from '../setup/command.mjs';
import { ort, transformersModule } from './onnx/peers.mjs';

const siblingFiles = join(root, 'tests/files/tiny-llama');
const words = 288;
/** Least SQNR of the logits in dB; 4 bits in groups have near 20 for each weight, and q8 rounds inputs with outliers, too. */
const cases = [
  { dtype: 'q4', suffix: '_q4', config: 'int4_wo_32', least: 10 },
  { dtype: 'q8', suffix: '_quantized', config: 'int8_dynamic', least: 12 },
  { dtype: 'int8', suffix: '_int8', config: 'int8', least: 30, onnx: { externalData: true } },
];

function modelFolder(folder) {
  mkdirSync(folder);
  for (const name of ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json'])
    copyFileSync(join(siblingFiles, name), join(folder, name));
  const path = process.env.WASMQUANT_TINY_LLAMA_ONNX;
  if (path) copyFileSync(path, join(folder, 'model.onnx'));
  else writeFileSync(join(folder, 'model.onnx'), wordModel(words));
}

const decibels = (actual, expected) => {
  let [signal, noise] = [0, 0];
  for (const [i, x] of expected.entries()) {
    signal += x * x;
    noise += (actual[i] - x) ** 2;
  }
  return 10 * Math.log10(signal / noise);
};

async function logitsOf(path, ids) {
  const session = await ort.InferenceSession.create(path, { logSeverityLevel: 3 });
  const { logits } = await session.run({ input_ids: new ort.Tensor('int64', ids.data, ids.dims) });
  await session.release();
  return logits.data;
}

main(async () => {
  const { AutoModelForCausalLM, AutoTokenizer, env } = await import(pathToFileURL(transformersModule));
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-transformers-js-'));
  const quantizer = await createQuantizer({ threads: 1 });
  Object.assign(env, { allowRemoteModels: false, useFSCache: false, useWasmCache: false, localModelPath: `${work}/` });
  let failed = 0;
  try {
    modelFolder(join(work, 'float'));
    const quantized = join(work, 'quantized');
    const model = await quantizer.open(join(work, 'float'));
    for (const { config, onnx } of cases)
      await quantizer.quantizeModel(model, config, { target: quantized, overwrite: true, ...(onnx && { onnx }) });
    await model.close();
    const tokenizer = await AutoTokenizer.from_pretrained('quantized');
    const inputs = tokenizer('The licence of this program');
    const expected = await logitsOf(join(work, 'float/model.onnx'), inputs.input_ids);
    for (const { dtype, suffix, least } of cases) {
      let text = '';
      try {
        const loaded = await AutoModelForCausalLM.from_pretrained('quantized', { dtype });
        const { logits } = await loaded(inputs);
        const direct = await logitsOf(join(quantized, `onnx/model${suffix}.onnx`), inputs.input_ids);
        if (!Buffer.from(logits.data.buffer).equals(Buffer.from(direct.buffer)))
          throw new Error('its logits are not those of onnxruntime-node');
        const sqnr = decibels(logits.data, expected);
        if (!(sqnr >= least)) throw new Error(`SQNR of the logits ${sqnr.toFixed(1)} dB, below ${least}`);
        const output = await loaded.generate({ ...inputs, max_new_tokens: 8, do_sample: false });
        const count = output.dims[1] - inputs.input_ids.dims[1];
        if (count < 1) throw new Error('generate() made no token');
        text = `ok  SQNR of the logits ${sqnr.toFixed(1)} dB, ${count} tokens generated`;
        await loaded.dispose();
      } catch (error) {
        ++failed;
        text = `FAILED  ${error.message}`;
      }
      process.stdout.write(`transformers.js, ${dtype.padEnd(6)} ${text}\n`);
    }
    process.stdout.write(`files: ${readdirSync(quantized, { recursive: true }).sort().join(' ')}\n`);
  } finally {
    rmSync(work, { recursive: true, force: true });
    await quantizer[Symbol.asyncDispose]();
  }
  process.stdout.write(`transformers.js: ${cases.length - failed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
});
