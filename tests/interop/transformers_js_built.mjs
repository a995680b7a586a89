// The sample as an ONNX folder whose graph is built of config.json, continued by transformers.js in a page.
import { join } from 'node:path';
import { root } from '../setup/command.mjs';

const sample = join(root, 'tests/files/tiny-llama');
const float = { global_quant_config: { weight: { dtype: 'int8' } }, exclude: ['*'] };
const folder = 'built';
const prompt = [5, 90, 17, 33, 81, 2, 64];
const count = 6;

/** Writes fp32 and q4 into a folder of `models`. Resolves to the tokens that our forward pass continues with. */
export async function writeBuilt(quantizer, models) {
  const model = await quantizer.open(sample);
  for (const config of [float, 'int4_wo_32'])
    await quantizer.quantizeModel(model, config, { target: join(models, folder), format: 'onnx' });
  const { tokens } = await (await quantizer.languageModel(model)).generate({ tokens: prompt, count });
  await model.close();
  return tokens;
}

/** Runs in the page. */
async function continued([name, tokens, length, dtype, device]) {
  const { env, Tensor, AutoModelForCausalLM } = await import('/transformers/transformers.web.js');
  Object.assign(env, {
    allowRemoteModels: false,
    allowLocalModels: true,
    localModelPath: '/models/',
    useBrowserCache: false,
  });
  env.backends.onnx.wasm.wasmPaths = new URL('/ort/', location.href).href;
  env.backends.onnx.wasm.numThreads = 1;
  const loaded = await AutoModelForCausalLM.from_pretrained(name, { dtype, ...(device && { device }) });
  const int64 = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
  const inputs = { input_ids: int64(tokens), attention_mask: int64(tokens.map(() => 1)) };
  const ids = await loaded.generate({ ...inputs, max_new_tokens: length, do_sample: false });
  await loaded.dispose();
  return Array.from(ids.data, Number).slice(tokens.length);
}

/** What differs on a page from `expected`, and with int4 weights from what they continued with on the device before; '' if nothing does. */
export async function builtProblem(page, device, expected, before) {
  const run = (dtype) => page.evaluate(continued, [folder, prompt, count, dtype, device]);
  const whole = await run('fp32');
  if (whole.join() !== expected.join()) return `fp32 continues with ${whole}, our pass with ${expected}`;
  const packed = await run('q4');
  before.q4 ??= packed;
  return packed.join() === before.q4.join() ? '' : `q4 continues with ${packed}, on another device with ${before.q4}`;
}
