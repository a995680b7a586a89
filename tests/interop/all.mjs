// npm run test:interop: our output files loaded by independent programs: scripts of tests/interop, two at a time. The peers of some come
// from npm, those of the others are Debian packages, which are unpacked meanwhile. Where those cannot be had (no root), it says so
// and leaves their scripts out; under CI that is a failure.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { buildAll, buildNative } from '../setup/build.mjs';
import { chromium } from '../setup/chromium.mjs';
import { CommandFailed, main, root, say } from '../setup/command.mjs';

const withNpmPeers = [
  ...['onnx/onnx', 'onnx/builds', 'onnx/chromium', 'transformers_js', 'transformers_js_page'],
  'wllama',
];
const withDebianPeers = ['gguf/quantize', 'gguf/gguf', 'gguf/limits', 'interop', 'words', 'hostile', 'small_floats'];
const cannotBeMadeHere = 3;

/** Runs one script; shows what it printed when it has ended. Resolves to whether it passed. */
async function runScript(name) {
  const start = performance.now();
  const child = spawn(process.execPath, [`tests/interop/${name}.mjs`], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const [status] = await once(child, 'close');
  const outcome = status === 0 ? 'passed' : `FAILED (exit code ${status})`;
  process.stdout.write(`${output}${name}: ${outcome} in ${((performance.now() - start) / 1000).toFixed(0)} s\n`);
  return status === 0;
}

/** Resolves to the number of scripts that failed. */
async function runScripts(names) {
  const waiting = [...names];
  let failed = 0;
  const work = async () => {
    for (let name = waiting.shift(); name; name = waiting.shift()) if (!(await runScript(name))) failed++;
  };
  await Promise.all([work(), work()]);
  return failed;
}

main(async () => {
  buildAll();
  chromium(); // what it installs, it installs before the peers do: packages come one after another
  const peers = spawn('bash', [join(root, 'tests/interop/peers.sh'), 'create'], { cwd: root, stdio: ['ignore', 2, 2] });
  const ended = once(peers, 'close');
  buildNative('release', 'wasmquant_onnx_tool', 'wasmquant_gguf_tool');
  const failed = await runScripts(withNpmPeers);
  const [status] = await ended;
  if (status === cannotBeMadeHere) {
    say(`${withDebianPeers.join(', ')} were not run: their peers cannot be installed here (see above)`);
    return process.env.CI || failed > 0 ? 1 : 0;
  }
  if (status !== 0) throw new CommandFailed('tests/interop/peers.sh create', status ?? 1);
  return failed + (await runScripts(withDebianPeers)) > 0 ? 1 : 0;
});
