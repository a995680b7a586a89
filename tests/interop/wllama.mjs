// GGUF files in a browser: wllama, llama.cpp's own WebAssembly build, loads ours in headless Chromium and writes a text
// with them, from one file and from parts. A line per case; exit code 1 when one fails.
//   node tests/interop/wllama.mjs
// Needs dist/ and Chromium.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { createQuantizer } from '../../dist/node.js';
import { chromium as chromiumPath } from '../setup/chromium.mjs';
import { main, root } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';
import { wllama } from './wllama_peer.mjs';

const recipes = ['q4_0', 'q8_0', 'q4_k_m', 'q6_k', 'tq2_0', 'mxfp4', 'iq4_nl', 'bf16'];

/** Runs in the page: the text that the model in these files writes. */
async function complete(names) {
  const { Wllama } = await import('/wllama/index.js');
  const model = new Wllama({ default: '/wllama/wasm/wllama.wasm' }, { suppressNativeLog: true });
  try {
    const files = await Promise.all(names.map(async (name) => (await fetch(`/${name}`)).blob()));
    await model.loadModel(files, { n_ctx: 128, n_threads: 1 });
    const { choices } = await model.createCompletion({ prompt: 'And the ', max_tokens: 16, temperature: 0 });
    return choices[0].text;
  } finally {
    await model.exit();
  }
}

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-wllama-'));
  const quantizer = await createQuantizer({ threads: 1 });
  let failed = 0;
  try {
    const model = await quantizer.open(join(root, 'tests/files/tiny-llama'));
    const cases = [];
    for (const recipe of recipes) {
      await quantizer.quantizeModel(model, { dialect: 'gguf', recipe }, { target: join(folder, `${recipe}.gguf`) });
      cases.push([recipe, [`${recipe}.gguf`]]);
    }
    const gguf = { shardBytes: 1_000_000 };
    const { files } = await quantizer.quantizeModel(model, 'q8_0', { target: join(folder, 'parts'), gguf });
    cases.push([`q8_0 in ${files.length} parts`, files.map(({ name }) => `parts/${name}`)]);
    await model.close();
    cpSync(join(wllama, 'esm'), join(folder, 'wllama'), { recursive: true });
    writeFileSync(join(folder, 'index.html'), '<!doctype html><title>wllama</title>');

    const server = await serve(folder);
    const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--headless', '--no-sandbox'] });
    try {
      for (const [name, names] of cases) {
        const page = await browser.newPage();
        await page.goto(server.url);
        const [text, problem] = await page.evaluate(complete, names).then(
          (written) => [written, /[a-z]{2}/.test(written) ? null : `wrote ${JSON.stringify(written)}`],
          (error) => ['', error.message.split('\n')[0]],
        );
        if (problem) ++failed;
        process.stdout.write(`wllama ${name}: ${problem ? `FAILED ${problem}` : `ok, ${JSON.stringify(text)}`}\n`);
        await page.close();
      }
    } finally {
      await browser.close();
      await server.close();
    }
    process.stdout.write(`wllama: ${cases.length - failed} passed, ${failed} failed\n`);
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
  return failed === 0 ? 0 : 1;
});
