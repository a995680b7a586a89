// A whole file in headless Chromium: a File on disk through a worker into the browser's private file system (OPFS), and into a
// stream that drops what it gets, beside Node with the same file. Runs take turns.
//   chromium_bench.mjs [--mib N] [--runs N] [--threads N]       stdout is one JSON document
// GB/s = 10^9 input bytes per second of wall time of quantizeModel.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { chromium as chromiumPath } from '../setup/chromium.mjs';
import { root } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';
import { quantize } from './file_process.mjs';
import { weights, writeSafetensors } from './model_files.mjs';

const { values: options } = parseArgs({
  options: {
    mib: { type: 'string', default: '1024' },
    runs: { type: 'string', default: '3' },
    threads: { type: 'string', default: '1' },
  },
});
const preset = 'int4_wo_128';
const threads = Number(options.threads);

const page = `<!doctype html><input type="file"><script type="module">
import { createQuantizer } from './dist/index.js';
globalThis.measure = async (threads, toDisk) => {
  const [file] = document.querySelector('input').files;
  const quantizer = await createQuantizer({ threads });
  const model = await quantizer.open(file);
  const storage = await navigator.storage.getDirectory();
  let bytes = 0;
  const target = toDisk
    ? await storage.getFileHandle('out.safetensors', { create: true })
    : new WritableStream({ write(chunk) { bytes += chunk.byteLength; } });
  const begin = performance.now();
  await quantizer.quantizeModel(model, '${preset}', { target, overwrite: true });
  const milliseconds = performance.now() - begin;
  const out = toDisk ? await target.getFile() : null;
  const digest = out && [...new Uint8Array(await crypto.subtle.digest('SHA-256', await out.arrayBuffer()))];
  await model.close();
  await quantizer[Symbol.asyncDispose]();
  if (toDisk) await storage.removeEntry('out.safetensors');
  return { milliseconds, bytes: out?.size ?? bytes, digest: digest?.map((byte) => byte.toString(16).padStart(2, '0')).join('') };
};
document.title = 'ready';
</script>`;

const folder = mkdtempSync(join(tmpdir(), 'wasmquant-bench-'));
let browser;
let server;
try {
  const input = join(folder, 'model.safetensors');
  const layers = Math.max(1, Math.round(Number(options.mib) / 64));
  const shape = [4096, 4096];
  const tensors = Array.from({ length: layers }, (_, layer) => ({
    name: `model.layers.${layer}.mlp.up_proj.weight`,
    shape,
  }));
  writeSafetensors(input, tensors, weights(shape[0] * shape[1], 1));
  const bytes = statSync(input).size;
  readFileSync(input); // into the page cache
  const site = join(folder, 'site');
  mkdirSync(site);
  symlinkSync(join(root, 'dist'), join(site, 'dist'));
  writeFileSync(join(site, 'index.html'), page);
  server = await serve(site);
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
  browser = await chromium.launch({ executablePath: chromiumPath(), args });
  const tab = await (await browser.newContext()).newPage();
  await tab.goto(server.url);
  await tab.waitForFunction(() => document.title === 'ready');
  await tab.locator('input').setInputFiles(input);
  const inTab = (toDisk) => tab.evaluate(([count, disk]) => globalThis.measure(count, disk), [threads, toDisk]);
  const rounds = [];
  for (let run = 0; run < Number(options.runs); ++run) {
    const node = quantize(input, folder, { threads, single: true });
    const disk = await inTab(true);
    const stream = await inTab(false);
    if (disk.digest !== node.sha256) throw new Error('Chromium wrote other bytes than Node');
    rounds.push([node, disk, stream].map(({ milliseconds }) => milliseconds));
  }
  const [node, disk, stream] = [0, 1, 2].map((at) => Math.min(...rounds.map((round) => round[at])));
  const rate = (milliseconds) => bytes / 1e6 / milliseconds;
  const result = {
    bytes,
    threads,
    node: rate(node),
    chromium: rate(disk),
    chromiumStream: rate(stream),
    ratios: rounds.map(([a, b, c]) => ({ disk: a / b, stream: a / c })),
    rounds,
  };
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
} finally {
  await browser?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
}
