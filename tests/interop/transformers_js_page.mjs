// transformers.js in headless Chromium: models of four kinds, q4, q8 (dynamic inputs) and int8 files of each, on its default
// device and on WebGPU (SwiftShader). Outputs must be close to the float model's on the same device. Then a folder of
// safetensors whose graph is built here: the continuation is that of our forward pass. A line per model, dtype and device; exit
// code 1 when one fails.
//   node tests/interop/transformers_js_page.mjs
// transformers.js and its runtime come from npm (onnx/peers.mjs). Needs dist/ and Chromium.
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';
import { chromiumWithGpu } from '../setup/chromium_gpu.mjs';
import { main } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';
import { packages, versionOf } from './onnx/peers.mjs';
import { compare } from './onnx/run.mjs';
import { builtProblem, writeBuilt } from './transformers_js_built.mjs';
import { kinds } from './transformers_js_models.mjs';

/** Least SQNR of the output in dB. */
const dtypes = [
  { dtype: 'q4', suffix: '_q4', config: 'int4_wo_32', least: 10 },
  { dtype: 'q8', suffix: '_quantized', config: 'int8_dynamic', least: 18 },
  { dtype: 'int8', suffix: '_int8', config: 'int8', least: 30 },
];
const transformers = join(packages, '@huggingface/transformers');
/** Its own release of the runtime, where npm has put it. */
const runtime = (name) => {
  const own = join(transformers, 'node_modules', name);
  return existsSync(own) ? own : join(packages, name);
};

/** Runs in the page: the output of the model of one dtype. */
async function output([folder, type, feeds, name, dtype, device]) {
  const { env, Tensor, ...classes } = await import('/transformers/transformers.web.js');
  Object.assign(env, {
    allowRemoteModels: false,
    allowLocalModels: true,
    localModelPath: '/models/',
    useBrowserCache: false,
  });
  env.backends.onnx.wasm.wasmPaths = new URL('/ort/', location.href).href;
  env.backends.onnx.wasm.numThreads = 1;
  const loaded = await classes[type].from_pretrained(folder, { dtype, ...(device && { device }) });
  const inputs = Object.entries(feeds).map(([key, { type, data, dims }]) => {
    const values = type === 'int64' ? BigInt64Array.from(data, BigInt) : Float32Array.from(data);
    return [key, new Tensor(type, values, dims)];
  });
  const outputs = await loaded(Object.fromEntries(inputs));
  const values = Array.from(await outputs[name].data);
  await loaded.dispose();
  return values;
}

async function writeModels(quantizer, root) {
  for (const { folder, config, files } of kinds()) {
    const target = join(root, folder);
    mkdirSync(join(target, 'onnx'), { recursive: true });
    writeFileSync(join(target, 'config.json'), JSON.stringify(config));
    for (const [name, bytes] of Object.entries(files)) {
      const source = join(target, 'onnx', `${name}.onnx`);
      writeFileSync(source, bytes);
      for (const { suffix, config: preset } of dtypes) {
        const opened = await quantizer.open(source);
        await quantizer.quantizeModel(opened, preset, { target: join(target, 'onnx', `${name}${suffix}.onnx`) });
        await opened.close();
      }
    }
  }
}

main(async () => {
  const root = mkdtempSync(join(tmpdir(), 'wasmquant-transformers-page-'));
  const quantizer = await createQuantizer({ threads: 1 });
  let failed = 0;
  try {
    await writeModels(quantizer, join(root, 'models'));
    const expected = await writeBuilt(quantizer, join(root, 'models'));
    const before = {};
    cpSync(join(transformers, 'dist'), join(root, 'transformers'), { recursive: true });
    cpSync(join(runtime('onnxruntime-web'), 'dist'), join(root, 'ort'), {
      recursive: true,
      filter: (path) => !/\.map$|\.js$/.test(path),
    });
    cpSync(join(runtime('onnxruntime-common'), 'dist/esm'), join(root, 'common'), { recursive: true });
    const imports = { 'onnxruntime-web/webgpu': '/ort/ort.webgpu.min.mjs', 'onnxruntime-common': '/common/index.js' };
    const map = `<script type="importmap">${JSON.stringify({ imports })}</script>`;
    writeFileSync(join(root, 'index.html'), `<!doctype html><title>transformers.js</title>${map}`);
    const server = await serve(root);
    const browser = await chromiumWithGpu();
    process.stdout.write(`transformers.js ${versionOf('@huggingface/transformers')}, Chromium ${browser.version()}\n`);
    try {
      for (const device of [null, 'webgpu']) {
        const page = await browser.newPage();
        await page.goto(server.url);
        for (const { folder, type, feeds, output: name } of kinds()) {
          const run = (dtype) => page.evaluate(output, [folder, type, feeds, name, dtype, device]);
          const expected = await run('fp32');
          for (const { dtype, least } of dtypes) {
            let text = '';
            try {
              const { decibels } = compare([await run(dtype)], [expected]);
              if (!(decibels >= least)) throw new Error(`SQNR of the output ${decibels.toFixed(1)} dB, below ${least}`);
              text = `ok  SQNR of the output ${decibels.toFixed(1)} dB`;
            } catch (error) {
              ++failed;
              text = `FAILED  ${error.message.split('\n')[0]}`;
            }
            process.stdout.write(`${folder.padEnd(8)} ${dtype.padEnd(5)} ${(device ?? 'default').padEnd(8)} ${text}\n`);
          }
        }
        const problem = await builtProblem(page, device, expected, before).catch(
          (error) => error.message.split('\n')[0],
        );
        failed += problem === '' ? 0 : 1;
        const text = problem === '' ? 'ok  the tokens of our pass' : `FAILED  ${problem}`;
        process.stdout.write(`built    fp32  ${(device ?? 'default').padEnd(8)} ${text}\n`);
        await page.close();
      }
    } finally {
      await browser.close();
      await server.close();
    }
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  }
  return failed > 0 ? 1 : 0;
});
