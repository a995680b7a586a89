// Every operator form that we write, run in every build of onnxruntime-web: plain, jsep, asyncify (which transformers.js
// loads) and jspi, on the provider wasm and, in jsep and asyncify, on WebGPU (SwiftShader), in headless Chromium. Outputs must
// be those of onnxruntime-node on the same file. A line per build and provider; exit code 1 when a file fails.
//   node tests/interop/onnx/builds.mjs [part of a file's name]
// The runtimes come from npm (peers.mjs). Needs dist/ and Chromium.
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { captureActivations } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { chromiumWithGpu } from '../../setup/chromium_gpu.mjs';
import { main } from '../../setup/command.mjs';
import { serve } from '../../setup/static_server.mjs';
import { formsOf } from './builds_forms.mjs';
import { ort, packages, versionOf } from './peers.mjs';
import { multipliesSignedExactly } from './products.mjs';
import { compare } from './run.mjs';

/** The entries of onnxruntime-web by the WebAssembly file that each loads. */
const builds = {
  plain: 'ort.wasm.min.mjs',
  jsep: 'ort.min.mjs',
  asyncify: 'ort.webgpu.min.mjs',
  jspi: 'ort.jspi.min.mjs',
};

/** Of builds without WebGPU. That of jspi did not answer in Chromium 156 with SwiftShader. */
const providers = { plain: ['wasm'], jspi: ['wasm'] };

/**
 * What onnxruntime-web itself does not compute in a build on a provider, by form: its message, or a wrong value. No preset
 * writes these. A form that runs after all fails the test, too.
 */
const gaps = {
  'jsep webgpu': {
    'int8 level 4': 'MatMulNBits of 8 bits',
    'int8 groups': 'MatMulNBits of 8 bits',
    'uint8 groups': 'MatMulNBits of 8 bits',
    'uint4 groups': 'MatMulNBits with zero points of an even number of blocks above 4',
    'int8_per_tensor qdq': 'DequantizeLinear with one scale',
    'static inputs': 'DequantizeLinear with one scale',
    'static inputs and outputs': 'DequantizeLinear with one scale',
  },
};

/** Runs in the page: outputs of each file, or its error. */
async function runAll([entry, provider, files]) {
  const runtime = await import(`/ort/${entry}`);
  runtime.env.wasm.numThreads = 1;
  runtime.env.wasm.wasmPaths = new URL('/ort/', location.href).href;
  runtime.env.logLevel = 'error';
  const found = {};
  for (const { name, feeds } of files) {
    try {
      const bytes = new Uint8Array(await (await fetch(`/${name}.onnx`)).arrayBuffer());
      const session = await runtime.InferenceSession.create(bytes, { executionProviders: [provider] });
      const inputs = Object.entries(feeds).map(([key, { type, data, dims }]) => {
        const values = type === 'int64' ? BigInt64Array.from(data, BigInt) : Float32Array.from(data);
        return [key, new runtime.Tensor(type, values, dims)];
      });
      const outputs = await session.run(Object.fromEntries(inputs));
      found[name] = { values: session.outputNames.map((output) => Array.from(outputs[output].data)) };
      await session.release();
    } catch (error) {
      found[name] = { error: String(error.message ?? error).split('\n')[0] };
    }
  }
  return found;
}

const tensorsOf = (feeds) =>
  Object.fromEntries(
    Object.entries(feeds).map(([key, { type, data, dims }]) => [
      key,
      new ort.Tensor(type, type === 'int64' ? BigInt64Array.from(data, BigInt) : Float32Array.from(data), dims),
    ]),
  );

/** Writes the files, each with what onnxruntime-node makes of it. */
async function writeFiles(quantizer, folder, only) {
  const files = [];
  for (const { model, name, bytes, feeds, forms } of formsOf()) {
    const path = join(folder, `${model}.source.onnx`);
    writeFileSync(path, bytes);
    for (const [form, { config, onnx = {}, isStatic = false, mayRound = false }] of Object.entries(forms)) {
      const file = `${model}-${form}`.replaceAll(' ', '-');
      if (only && !file.includes(only)) continue;
      const target = join(folder, `${file}.onnx`);
      const opened = await quantizer.open(path);
      const calibration = isStatic ? captureActivations(ort, opened, [tensorsOf(feeds)]) : undefined;
      const report = await quantizer.quantizeModel(opened, config, { target, onnx, calibration });
      await opened.close();
      if (report.totals.quantized === 0) throw new Error(`${file}: nothing was quantized`);
      const session = await ort.InferenceSession.create(target, { graphOptimizationLevel: 'disabled' });
      const outputs = await session.run(tensorsOf(feeds));
      const expected = session.outputNames.map((output) => outputs[output].data);
      await session.release();
      files.push({ name: file, form, title: `${name}, ${form}`, feeds, expected, mayRound });
    }
  }
  return files;
}

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-builds-'));
  const quantizer = await createQuantizer({ threads: 1 });
  let failed = 0;
  try {
    const files = await writeFiles(quantizer, folder, process.argv[2]);
    mkdirSync(join(folder, 'ort'));
    cpSync(join(packages, 'onnxruntime-web/dist'), join(folder, 'ort'), {
      recursive: true,
      filter: (path) => !/\.map$|\.js$/.test(path),
    });
    writeFileSync(join(folder, 'index.html'), '<!doctype html><title>builds</title>');
    const server = await serve(folder);
    const browser = await chromiumWithGpu();
    const isExact = await multipliesSignedExactly();
    let plain = null;
    process.stdout.write(`onnxruntime-web ${versionOf('onnxruntime-web')}, Chromium ${browser.version()}\n`);
    try {
      for (const [build, entry] of Object.entries(builds))
        for (const provider of providers[build] ?? ['wasm', 'webgpu']) {
          const known = gaps[`${build} ${provider}`] ?? {};
          const found = {};
          // What fails may leave the device in another state: each in a page of its own.
          const alone = files.filter(({ form }) => known[form]).map((file) => [file]);
          for (const batch of [files.filter(({ form }) => !known[form]), ...alone]) {
            const page = await browser.newPage();
            await page.goto(server.url);
            const sent = batch.map(({ name, feeds }) => ({ name, feeds }));
            Object.assign(found, await page.evaluate(runAll, [entry, provider, sent]));
            await page.close();
          }
          plain ??= found;
          const problems = [];
          let worst = 0;
          let left = 0;
          for (const { name, form, title, expected, mayRound } of files) {
            const { values, error } = found[name];
            const wanted = mayRound && !isExact ? (plain[name].values ?? expected) : expected;
            const relative = values ? compare(values, wanted).relative : Number.POSITIVE_INFINITY;
            if (known[form]) {
              ++left;
              if (relative <= 1e-4) problems.push(`${title}: it runs now; take it out of the gaps`);
              continue;
            }
            if (!error) worst = Math.max(worst, relative);
            if (error) problems.push(`${title}: ${error.slice(0, 160)}`);
            else if (!(relative <= (mayRound ? 2e-2 : 1e-4))) problems.push(`${title}: outputs differ by ${relative}`);
          }
          failed += problems.length;
          const gap = left > 0 ? `, ${left} left out` : '';
          const text = `${files.length - left - problems.length} of ${files.length} files, outputs within ${worst.toExponential(1)}${gap}`;
          process.stdout.write(
            `${build.padEnd(9)} ${provider.padEnd(7)} ${problems.length ? 'FAILED' : 'ok'}  ${text}\n`,
          );
          for (const problem of problems) process.stdout.write(`  ${problem}\n`);
        }
    } finally {
      await browser.close();
      await server.close();
    }
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
  return failed > 0 ? 1 : 0;
});
