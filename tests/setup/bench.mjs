// npm run bench [-- --json] [--peer-llama-quantize PATH] [--kernels | --files]: speed of the kernels (WebAssembly and native)
// beside plain JavaScript, torch (where tests/interop/peers.sh has made it) and memcpy, and of whole files. With --json
// stdout is one JSON document {kernels: {wasm, native, javascript, torch}, files, gguf}.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll, buildNative } from './build.mjs';
import { CommandFailed, main, needs, root } from './command.mjs';

function options(args) {
  try {
    return parseArgs({
      args,
      options: {
        json: { type: 'boolean' },
        kernels: { type: 'boolean' },
        files: { type: 'boolean' },
        'peer-llama-quantize': { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw Object.assign(
      needs(`${error.message}. Usage: npm run bench -- [--json] [--kernels | --files] [--peer-llama-quantize PATH]`),
      { exitCode: 2 },
    );
  }
}

/** Runs a bench program; with `json` its stdout is returned, else shown. */
function bench(title, command, args, json) {
  if (!json) process.stdout.write(`\n== ${title}\n`);
  const all = json && command !== 'bash' ? [...args, '--json'] : args;
  const { status, stdout, error } = spawnSync(command, all, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', json ? 'pipe' : 'inherit', 'inherit'],
  });
  if (error) throw error;
  if (status !== 0) throw new CommandFailed(`${title} bench`, status ?? 1);
  return stdout;
}

/** The kernel bench prints one JSON object a line. */
function rows(text) {
  const lines = text?.split('\n').filter(Boolean);
  return lines?.map((line) => JSON.parse(line)) ?? null;
}

const plainJavascript = 'tests/bench/plain_javascript.mjs';
const peersReady = join(root, '.peers/.ready');
const torch = ['torch_fake_quantize.py', 'torch_gptq.py'].map((script) => [
  'tests/interop/peers.sh',
  'run',
  'python3',
  `tests/bench/${script}`,
]);

main((args) => {
  const { json = false, kernels: kernelsOnly, files: filesOnly, 'peer-llama-quantize': peer } = options(args);
  const result = {};
  if (!filesOnly) {
    const wasm = join(buildNative('wasm', 'wasmquant_bench'), 'wasmquant_bench.cjs');
    const native = join(buildNative('release', 'wasmquant_bench'), 'wasmquant_bench');
    result.kernels = {
      wasm: rows(bench('kernels, WebAssembly', process.execPath, [wasm], json)),
      native: rows(bench('kernels, native', native, [], json)),
      javascript: rows(bench('the same in plain JavaScript, GB/s', process.execPath, [plainJavascript], json)),
      torch: existsSync(peersReady)
        ? torch.flatMap((args) => rows(bench('torch, one thread, GB/s or seconds', 'bash', args, json)) ?? [])
        : null,
    };
  }
  if (!kernelsOnly) {
    buildAll();
    const peerArgs = peer ? ['--peer-llama-quantize', resolve(process.env.INIT_CWD ?? process.cwd(), peer)] : [];
    const files = bench('whole files', process.execPath, ['tests/bench/file_bench.mjs', ...peerArgs], json);
    result.files = files && JSON.parse(files);
    const gguf = bench('GGUF files', process.execPath, ['tests/bench/gguf_bench.mjs', ...peerArgs], json);
    result.gguf = gguf && JSON.parse(gguf);
  }
  if (json) process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
});
