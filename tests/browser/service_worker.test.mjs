// The library where pages forbid something: in a service worker, which has no import() and no Worker, and under policies
// that lack a directive.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { root } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';
import { launchBrowser } from './browser.mjs';

const sample = 'model/model.safetensors';

/** Quantizes the sample by its URL; the names and sizes of what is written. */
const work = `async function work(createQuantizer, options) {
  const quantizer = await createQuantizer(options);
  const written = {};
  const write = async (name) => {
    written[name] = 0;
    return new WritableStream({ write: (bytes) => void (written[name] += bytes.length) });
  };
  try {
    const model = await quantizer.open(new URL('${sample}', location.href));
    const report = await quantizer.quantizeModel(model, 'int8', { target: { write } });
    const compared = await quantizer.compare(model, model);
    return { written, quantized: report.totals.quantized, compared: compared.tensors.length, threads: report.threads };
  } finally {
    await quantizer[Symbol.asyncDispose]();
  }
}
async function round(createQuantizer, options) {
  const quantizer = await createQuantizer(options);
  const spec = { dtype: 'int8', qscheme: 'per_tensor', symmetric: true };
  return Array.from(quantizer.quantize({ data: Float32Array.of(-1, 0.5), shape: [1, 2] }, spec).codes);
}
const told = (run) => run.catch((error) => ({ name: error.name, code: error.code, message: error.message }));`;

const worker = (entry, called = 'work') => `import { createQuantizer } from '${entry}';
${work}
addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('message', async ({ data, source }) => source.postMessage(await told(${called}(createQuantizer, data))));`;

const page = (policy = '') => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
${policy && `<meta http-equiv="Content-Security-Policy" content="${policy}">`}<script type="module" src="page.js"></script>`;

const script = `import { createQuantizer } from './dist/index.js';
${work}
window.run = (options) => told(work(createQuantizer, options));
window.inWorker = async (script, options) => {
  const { active, installing, waiting } = await navigator.serviceWorker.register(script, { type: 'module' });
  const worker = active ?? installing ?? waiting;
  const answer = new Promise((resolve) => (navigator.serviceWorker.onmessage = ({ data }) => resolve(data)));
  if (worker.state !== 'activated')
    await new Promise((resolve) => (worker.onstatechange = () => worker.state === 'activated' && resolve()));
  worker.postMessage(options);
  return answer;
};`;

const policies = {
  complete: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'",
  compiles: "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'",
  works: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'none'; connect-src 'self'",
  connects: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'",
};

let folder, server, browser;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'wasmquant-policies-'));
  symlinkSync(join(root, 'dist'), join(folder, 'dist'));
  // The two files that the entry needs, as an extension would hold them.
  mkdirSync(join(folder, 'extension'));
  for (const name of ['service_worker.js', 'wasmquant.wasm'])
    cpSync(join(root, 'dist', name), join(folder, 'extension', name));
  symlinkSync(join(root, 'tests/files/tiny-llama'), join(folder, 'model'));
  writeFileSync(join(folder, 'index.html'), page());
  for (const [name, policy] of Object.entries(policies)) writeFileSync(join(folder, `${name}.html`), page(policy));
  writeFileSync(join(folder, 'page.js'), script);
  writeFileSync(join(folder, 'one_file.js'), worker('./extension/service_worker.js'));
  writeFileSync(join(folder, 'many_files.js'), worker('./dist/index.js'));
  writeFileSync(join(folder, 'tensors.js'), worker('./dist/index.js', 'round'));
  server = await serve(folder);
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function opened(t, name = '') {
  const context = await browser.newContext();
  t.after(() => context.close());
  const found = await context.newPage();
  await found.goto(new URL(name, server.url).href);
  await found.waitForFunction(() => 'run' in window);
  return found;
}

test('a service worker quantizes with the entry in one file, without the option threads: 0', async (t) => {
  const here = await opened(t);
  const expected = await here.evaluate(() => window.run({ threads: 0 }));
  assert.equal(expected.threads, 0);
  assert.ok(expected.quantized > 20);
  for (const options of [{}, { threads: 0 }])
    assert.deepEqual(await here.evaluate((given) => window.inWorker('one_file.js', given), options), expected);
});

test('the main entry, imported in a service worker, quantizes tensors', async (t) => {
  const here = await opened(t);
  for (const options of [{}, { threads: 0 }])
    assert.deepEqual(await here.evaluate((given) => window.inWorker('tensors.js', given), options), [-127, 64]);
});

test('the main entry, asked for a model in a service worker, names the entry to import instead', async (t) => {
  const here = await opened(t);
  const { name, code, message } = await here.evaluate(() => window.inWorker('many_files.js', {}));
  assert.equal(name, 'QuantizationError');
  assert.equal(code, 'engine-unavailable');
  assert.match(message, /wasmquant\/service-worker/);
});

test('the policy of the guide suffices', async (t) => {
  const here = await opened(t, 'complete.html');
  assert.ok((await here.evaluate(() => window.run({ threads: 2 }))).quantized > 20);
});

test('with a policy that lacks a directive the message names it', async (t) => {
  for (const [name, options, code, words] of [
    ['compiles', {}, 'engine-unavailable', /'wasm-unsafe-eval' to script-src/],
    ['connects', {}, 'engine-unavailable', /connect-src/],
    ['works', { threads: 2 }, 'worker-crashed', /worker-src/],
  ]) {
    const here = await opened(t, `${name}.html`);
    const found = await here.evaluate((given) => window.run(given), options);
    assert.equal(found.code, code, found.message);
    assert.match(found.message, words);
    assert.doesNotMatch(found.message, /memoryBudgetBytes/);
  }
  const here = await opened(t, 'works.html');
  assert.ok((await here.evaluate(() => window.run({ threads: 0 }))).quantized > 20);
});
