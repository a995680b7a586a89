// npm run test:interop: our output files loaded by independent programs. Prepares the programs, then runs
// tests/interop/onnx.mjs, onnx_chromium.mjs, transformers_js.mjs and wllama.mjs, whose peers come from npm, and interop.mjs,
// words.mjs, hostile.mjs, small_floats.mjs, gguf_quantize.mjs and gguf.mjs, whose peers are Debian packages. Where those cannot be had
// (no root), it says so
// and leaves them out; under CI that is a failure.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildAll, buildNative } from './build.mjs';
import { CommandFailed, main, root, run } from './command.mjs';

const cannotBeMadeHere = 3;

main(() => {
  buildAll();
  buildNative('release', 'wasmquant_onnx_tool');
  run(process.execPath, ['tests/interop/onnx.mjs']);
  run(process.execPath, ['tests/interop/onnx_chromium.mjs']);
  run(process.execPath, ['tests/interop/transformers_js.mjs']);
  run(process.execPath, ['tests/interop/wllama.mjs']);
  const peers = spawnSync('bash', [join(root, 'tests/interop/peers.sh'), 'create'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (peers.status === cannotBeMadeHere) {
    process.stdout.write(
      'interop: only ONNX and wllama were run, because the other peers cannot be installed here (see above)\n',
    );
    return process.env.CI ? 1 : 0;
  }
  if (peers.status !== 0) throw new CommandFailed('tests/interop/peers.sh create', peers.status ?? 1);
  run(process.execPath, ['tests/interop/interop.mjs']);
  run(process.execPath, ['tests/interop/words.mjs']);
  run(process.execPath, ['tests/interop/hostile.mjs']);
  run(process.execPath, ['tests/interop/small_floats.mjs']);
  run(process.execPath, ['tests/interop/gguf_quantize.mjs']);
  buildNative('release', 'wasmquant_gguf_tool');
  run(process.execPath, ['tests/interop/gguf.mjs']);
});
