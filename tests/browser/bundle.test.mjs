// The library in one file, `wasmquant/bundle`: from the page's own origin and from another one, as from a CDN.

import assert from 'node:assert/strict';
import { createReadStream, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { root } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';
import { launchBrowser } from './browser.mjs';

const page = (policy) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<meta http-equiv="Content-Security-Policy" content="${policy}"><title>bundle</title>`;

/** What the guide says that a policy needs. */
const policyOf = (cdn) =>
  `default-src 'none'; script-src 'self' 'wasm-unsafe-eval' ${cdn}; worker-src 'self' blob: ${cdn}; connect-src 'self' ${cdn}`;

/** The files of dist that a CDN would have, with the header that lets pages of other origins import them. */
async function cdnServer() {
  const types = { js: 'text/javascript', wasm: 'application/wasm' };
  const server = createServer((request, response) => {
    const name = /^\/((?:bundle|index)\.js|wasmquant\.wasm)$/.exec(request.url)?.[1];
    if (!name) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[name.split('.')[1]], 'access-control-allow-origin': '*' });
    createReadStream(join(root, 'dist', name)).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}

let folder, server, cdn, browser;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'wasmquant-bundle-'));
  symlinkSync(join(root, 'dist'), join(folder, 'dist'));
  symlinkSync(join(root, 'tests/files/tiny-llama'), join(folder, 'model'));
  cdn = await cdnServer();
  writeFileSync(join(folder, 'index.html'), page(policyOf(cdn.url)));
  server = await serve(folder);
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.close();
  await cdn?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Quantizes the sample: what was written, the threads, and the names of scripts and modules that were asked for. */
async function quantized(entry) {
  const context = await browser.newContext();
  const asked = [];
  context.on('request', (request) => asked.push(request.url()));
  const found = await context.newPage();
  await found.goto(server.url);
  const report = await found.evaluate(async (address) => {
    const { createQuantizer } = await import(address);
    const quantizer = await createQuantizer({ threads: 2 });
    const written = {};
    const write = async (name) => {
      written[name] = [];
      return new WritableStream({ write: (bytes) => void written[name].push(bytes.slice()) });
    };
    const model = await quantizer.open(new URL('model/model.safetensors', location.href));
    const { threads, totals } = await quantizer.quantizeModel(model, 'int8', { target: { write } });
    await quantizer.close();
    const digests = {};
    for (const [name, parts] of Object.entries(written)) {
      const digest = await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer());
      digests[name] = [...new Uint8Array(digest)].join();
    }
    return { threads, quantized: totals.quantized, digests };
  }, entry);
  await context.close();
  const files = asked.map((url) => new URL(url).pathname.split('/').at(-1)).filter((name) => /\.(js|wasm)$/.test(name));
  return { report, files: files.sort() };
}

test('one script and one module, asked for once and again by each worker, make the files of the usual entry', async () => {
  const usual = await quantized(`${server.url}dist/index.js`);
  assert.equal(usual.report.threads, 2);
  assert.ok(usual.report.quantized > 20);
  for (const entry of [`${server.url}dist/bundle.js`, `${cdn.url}bundle.js`]) {
    const { report, files } = await quantized(entry);
    assert.deepEqual(report, usual.report, entry);
    assert.deepEqual([...new Set(files)], ['bundle.js', 'wasmquant.wasm'], entry);
    assert.ok(files.length <= 4, `${files}`);
    process.stdout.write(`# ${files.length} requests, the usual entry ${usual.files.length}\n`);
  }
});

test('imported in a worker of the page, the file is the library and no worker of its own', async () => {
  const context = await browser.newContext();
  const found = await context.newPage();
  await found.goto(server.url);
  const presets = await found.evaluate(async (address) => {
    const source = `import { createQuantizer } from '${address}'; const quantizer = await createQuantizer({ threads: 0 }); postMessage(quantizer.presets().length);`;
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })), { type: 'module' });
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    });
  }, `${cdn.url}bundle.js`);
  assert.ok(presets > 20);
  await context.close();
});
