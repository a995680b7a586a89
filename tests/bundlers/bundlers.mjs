// npm run test:bundlers: a small application that uses the packed package, built by every bundler and by Vite's
// development server, and without any, and run in headless Chromium with workers and without. The digest of the file it
// writes must be the one that Node gives. A line per bundler with the size of its JavaScript; exit code 1 when one fails.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';
import { pageResult } from '../hosts/browser_page.mjs';
import { work } from '../hosts/work.mjs';
import { install, pack } from '../package/packed.mjs';
import { buildAll } from '../setup/build.mjs';
import { chromium } from '../setup/chromium.mjs';
import { main, root } from '../setup/command.mjs';
import { builds, html } from './builds.mjs';
import { bundler } from './tools.mjs';

const here = import.meta.dirname;
const sample = join(root, 'tests/files/tiny-llama/model.safetensors');

/** Bytes of the files that end so, in `folder` and below. */
function bytesOf(folder, ending) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(ending));
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

function application(packed, name, optionsFile) {
  const app = install(packed, name, { 'options.js': optionsFile, 'index.html': html });
  copyFileSync(join(here, 'app.js'), join(app, 'app.js'));
  copyFileSync(join(root, 'tests/hosts/work.mjs'), join(app, 'work.mjs'));
  return app;
}

/** The address that a development server prints. */
function addressOf(server) {
  return new Promise((resolve, reject) => {
    let output = '';
    server.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      const address = /http:\/\/127\.0\.0\.1:\d+\//.exec(output);
      if (address) resolve(address[0]);
    });
    server.on('exit', (code) => reject(new Error(`vite ended with exit code ${code}\n${output}`)));
  });
}

main(async () => {
  buildAll();
  const browser = chromium();
  const packed = pack();
  let passed = 0;
  let failed = 0;
  const { sha256: expected } = await work(createQuantizer, new Uint8Array(readFileSync(sample)), { threads: 1 });
  const check = async (name, test) => {
    try {
      const { results, note } = await test();
      if (results.error) throw new Error(results.error);
      for (const { name: of, sha256 } of results)
        if (sha256 !== expected) throw new Error(`${of}: the file's digest is ${sha256}, not ${expected}`);
      process.stdout.write(`${name.padEnd(20)} passed  ${note}\n`);
      passed += 1;
    } catch (error) {
      process.stdout.write(`${name.padEnd(20)} FAILED  ${error.message}\n`);
      failed += 1;
    }
  };
  try {
    for (const { name, optionsFile, build } of builds) {
      await check(name, async () => {
        const app = application(packed, name, optionsFile);
        const out = join(app, 'out');
        build({
          app,
          out,
          run(command, args) {
            const { status, stdout, stderr } = spawnSync(bundler(command), args, { cwd: app, encoding: 'utf8' });
            if (status !== 0) throw new Error(`${command} ended with exit code ${status}\n${stdout}${stderr}`);
          },
        });
        copyFileSync(sample, join(out, 'model.safetensors'));
        const results = await pageResult('chromium', browser, { folder: out });
        const note = `JavaScript ${bytesOf(out, 'js')} bytes, module ${bytesOf(out, '.wasm')} bytes`;
        return { results, note };
      });
    }
    await check('Vite, development', async () => {
      const app = application(packed, 'vite-dev', builds[0].optionsFile);
      mkdirSync(join(app, 'public'));
      copyFileSync(sample, join(app, 'public/model.safetensors'));
      const server = spawn(bundler('vite'), ['--port', '0', '--host', '127.0.0.1'], {
        cwd: app,
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, NO_COLOR: '1' },
      });
      try {
        const url = await addressOf(server);
        return { results: await pageResult('chromium', browser, { url }), note: 'modules as they are' };
      } finally {
        server.kill();
      }
    });
  } finally {
    packed.remove();
  }
  process.stdout.write(`\nbundlers: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
