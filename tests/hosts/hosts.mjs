// npm run test:hosts: the packed package, installed from its tarball, in every host that can be had here. Each quantizes the
// sample model; the digest of what it writes must be the one that this Node's native file reading and two workers give.
// A line per host; exit code 1 when one fails. Where a host is for another kind of machine or cannot be installed, its
// line says so, and under CI that is a failure.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { install, pack } from '../package/packed.mjs';
import { buildAll } from '../setup/build.mjs';
import { chromium } from '../setup/chromium.mjs';
import { findProgram, installPackages, main, root } from '../setup/command.mjs';
import { pageResult } from './browser_page.mjs';
import { programs } from './programs.mjs';

const here = import.meta.dirname;
const sample = join(root, 'tests/files/tiny-llama');

function runFolder(program, args, app) {
  const { status, signal, stdout, stderr, error } = spawnSync(program, [...args, 'folder.mjs', sample], {
    cwd: app,
    encoding: 'utf8',
    timeout: 120_000,
  });
  if (status !== 0) throw new Error(`${program}: ${error?.message ?? signal ?? `exit code ${status}`}\n${stderr}`);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** One script and the module beside it, as wrangler would deliver them, served by workerd. */
async function runWorkerd(program, app) {
  const bundle = await rolldown({
    input: join(app, 'worker.mjs'),
    cwd: app,
    platform: 'browser',
    external: /\.wasm$/,
    resolve: { conditionNames: ['workerd', 'worker', 'import'] },
    logLevel: 'silent',
  });
  await bundle.write({ file: join(app, 'bundle.mjs'), format: 'esm', codeSplitting: false });
  await bundle.close();
  const port = await freePort();
  writeFileSync(
    join(app, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .quantize)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const quantize :Workerd.Worker = (
  modules = [
    (name = "bundle.mjs", esModule = embed "bundle.mjs"),
    (name = "wasmquant/wasmquant.wasm", wasm = embed "node_modules/wasmquant/dist/wasmquant.wasm")
  ],
  compatibilityDate = "2026-01-01"
);
`,
  );
  const server = spawn(program, ['serve', 'config.capnp'], { cwd: app, stdio: ['ignore', 'ignore', 'pipe'] });
  let complaints = '';
  server.stderr.setEncoding('utf8').on('data', (text) => {
    complaints += text;
  });
  try {
    const body = readFileSync(join(sample, 'model.safetensors'));
    for (let attempt = 0; ; attempt++) {
      let response;
      try {
        response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body });
      } catch (error) {
        if (attempt === 50 || server.exitCode !== null)
          throw new Error(`workerd: ${error.cause ?? error}\n${complaints}`);
        await new Promise((resolve) => setTimeout(resolve, 200));
        continue;
      }
      const text = await response.text();
      if (!response.ok) throw new Error(text);
      return JSON.parse(text);
    }
  } finally {
    server.kill('SIGKILL');
  }
}

/** The package's files, the model and a page that maps `wasmquant` to them. */
function pageFolder(app) {
  cpSync(join(app, 'node_modules/wasmquant/dist'), join(app, 'dist'), { recursive: true });
  copyFileSync(join(sample, 'model.safetensors'), join(app, 'model.safetensors'));
  writeFileSync(
    join(app, 'index.html'),
    `<!doctype html><meta charset="utf-8"><title>wasmquant</title>
<script type="importmap">{ "imports": { "wasmquant": "./dist/index.js" } }</script>
<script type="module" src="page.mjs"></script>
`,
  );
  return app;
}

function firefox() {
  const names = ['firefox', 'firefox-esr'];
  return findProgram(...names) ?? (installPackages('firefox-esr') ? findProgram(...names) : null);
}

main(async () => {
  buildAll();
  const packed = pack();
  const known = programs();
  let passed = 0;
  let failed = 0;
  let expected = null;
  const host = async (name, program, run) => {
    const title = name.padEnd(22);
    if (!program) {
      process.stdout.write(`${title} not to be had on this machine\n`);
      if (process.env.CI) failed += 1;
      return;
    }
    const start = performance.now();
    try {
      const results = await run(program);
      if (results.error) throw new Error(results.error);
      for (const { name: of, sha256, codes } of results) {
        expected ??= sha256;
        if (sha256 !== expected) throw new Error(`${of}: the file's digest is ${sha256}, not ${expected}`);
        if (codes && codes.join() !== '-127,-64,32,127') throw new Error(`${of}: the tensor's codes are ${codes}`);
      }
      const ways = results.map((result) => result.name).join('; ');
      process.stdout.write(`${title} passed  ${Math.round(performance.now() - start)} ms  ${ways}\n`);
      passed += 1;
    } catch (error) {
      process.stdout.write(`${title} FAILED  ${error.message}\n`);
      failed += 1;
    }
  };
  try {
    const app = install(packed, 'hosts');
    for (const file of ['work.mjs', 'folder.mjs', 'worker.mjs', 'page.mjs'])
      copyFileSync(join(here, file), join(app, file));
    await host(`Node ${process.versions.node}`, process.execPath, (program) => runFolder(program, [], app));
    for (const name of ['node22', 'node24', 'node26'])
      await host(name, known?.[name], (program) => runFolder(program, [], app));
    await host('Bun', known?.bun, (program) => runFolder(program, ['run'], app));
    await host('Deno', known?.deno, (program) =>
      runFolder(
        program,
        ['run', '--allow-read', '--allow-write', '--allow-env', '--allow-sys', '--node-modules-dir=manual'],
        app,
      ),
    );
    await host('Cloudflare workerd', known?.workerd, (program) => runWorkerd(program, app));
    const page = pageFolder(app);
    await host('Chromium', chromium(), (program) => pageResult('chromium', program, { folder: page }));
    await host('Firefox', firefox(), (program) => pageResult('firefox', program, { folder: page }));
  } finally {
    packed.remove();
  }
  process.stdout.write(`\nhosts: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
