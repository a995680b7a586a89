// npm run test:interop: our output files loaded by independent programs. Prepares the programs, then runs
// tests/interop/onnx.mjs, onnx_chromium.mjs, transformers_js.mjs and wllama.mjs, whose peers come from npm, and interop.mjs,
// words.mjs, hostile.mjs, small_floats.mjs, gguf_quantize.mjs, gguf_limits.mjs and gguf.mjs, whose peers are Debian packages, unpacked
// meanwhile. Where those cannot be had (no root), it says so and leaves them out; under CI that is a failure.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { buildAll, buildNative } from './build.mjs';
import { chromium } from './chromium.mjs';
import { CommandFailed, main, root, run } from './command.mjs';

const cannotBeMadeHere = 3;

main(async () => {
  buildAll();
  chromium(); // what it installs, it installs before the peers do: packages come one after another
  const peers = spawn('bash', [join(root, 'tests/interop/peers.sh'), 'create'], { cwd: root, stdio: ['ignore', 2, 2] });
  const ended = once(peers, 'close');
  buildNative('release', 'wasmquant_onnx_tool', 'wasmquant_gguf_tool');
  for (const name of ['onnx', 'onnx_chromium', 'transformers_js', 'wllama'])
    run(process.execPath, [`tests/interop/${name}.mjs`]);
  const [status] = await ended;
  if (status === cannotBeMadeHere) {
    process.stdout.write(
      'interop: only ONNX and wllama were run, because the other peers cannot be installed here (see above)\n',
    );
    return process.env.CI ? 1 : 0;
  }
  if (status !== 0) throw new CommandFailed('tests/interop/peers.sh create', status ?? 1);
  for (const name of ['interop', 'words', 'hostile', 'small_floats', 'gguf_quantize', 'gguf_limits', 'gguf'])
    run(process.execPath, [`tests/interop/${name}.mjs`]);
});
