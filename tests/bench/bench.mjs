// npm run bench [-- --out DIR] [--json] [--quick] [--kernels | --files] [--peer-llama-quantize PATH]: speed of the kernels
// (WebAssembly and native) compared with plain JavaScript, torch and memcpy; of the start of the command, with bare Node; of whole
// files, with llama-quantize, onnxruntime and a copy, in Node and Chromium; as size and workers grow; memory. Peers are those of
// tests/interop/peers.sh, once it has made them.
// Stdout is Markdown, with --json one JSON document; --out writes both, bench.md and bench.json. --quick: smaller and fewer.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll, buildNative } from '../setup/build.mjs';
import { CommandFailed, findProgram, main, needs, root } from '../setup/command.mjs';
import { markdownOf } from './bench_report.mjs';

const usage = 'npm run bench -- [--out DIR] [--json] [--quick] [--kernels | --files] [--peer-llama-quantize PATH]';

function optionsOf(args) {
  try {
    return parseArgs({
      args,
      options: {
        json: { type: 'boolean' },
        quick: { type: 'boolean' },
        kernels: { type: 'boolean' },
        files: { type: 'boolean' },
        out: { type: 'string' },
        'peer-llama-quantize': { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw Object.assign(needs(`${error.message}. Usage: ${usage}`), { exitCode: 2 });
  }
}

/** Stdout of a bench program; its stderr is shown. */
function bench(title, command, args) {
  process.stderr.write(`== ${title}\n`);
  const { status, stdout, error } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (error) throw error;
  if (status !== 0) throw new CommandFailed(`${title} bench`, status ?? 1);
  return stdout;
}

/** Programs that print one JSON object a line. */
const rows = (text) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

function kernelRows(isQuick) {
  const wasm = join(buildNative('wasm', 'wasmquant_bench'), 'wasmquant_bench.cjs');
  const native = join(buildNative('release', 'wasmquant_bench'), 'wasmquant_bench');
  const args = ['--json', '--fastest', ...(isQuick ? ['--rounds', '5', '--mib', '8'] : [])];
  const torch = ['torch_fake_quantize.py', 'torch_gptq.py'].slice(0, isQuick ? 1 : 2);
  return {
    wasm: rows(bench('kernels, WebAssembly', process.execPath, [wasm, ...args])),
    native: rows(bench('kernels, native', native, args)),
    javascript: rows(bench('plain JavaScript', process.execPath, ['tests/bench/plain_javascript.mjs', '--json'])),
    torch: existsSync(join(root, '.peers/.ready'))
      ? torch.flatMap((script) =>
          rows(
            bench(`torch, ${script}`, 'bash', ['tests/interop/peers.sh', 'run', 'python3', `tests/bench/${script}`]),
          ),
        )
      : null,
  };
}

function fileResults(isQuick, peer) {
  buildAll();
  const peerArgs = peer ? ['--peer-llama-quantize', resolve(process.env.INIT_CWD ?? process.cwd(), peer)] : [];
  const json = (title, script, ...args) =>
    JSON.parse(bench(title, process.execPath, [`tests/bench/${script}`, ...args]));
  const hasChromium = process.env.WASMQUANT_CHROMIUM || findProgram('chromium', 'chromium-browser', 'google-chrome');
  const quick = isQuick ? ['--quick'] : [];
  return {
    start: json('start-up', 'start_bench.mjs', ...(isQuick ? ['--runs', '3'] : [])),
    files: json('whole files', 'file_bench.mjs', ...quick, ...peerArgs),
    chromium: hasChromium ? json('Chromium', 'chromium_bench.mjs', ...(isQuick ? ['--mib', '256'] : [])) : null,
    gguf: json('GGUF files', 'gguf_bench.mjs', '--json', ...(isQuick ? ['--only', 'q8_0'] : []), ...peerArgs),
    mixture: json('calibration of a mixture', 'mixture_bench.mjs', '--json', ...(isQuick ? ['--runs', '1'] : [])),
  };
}

main((args) => {
  const options = optionsOf(args);
  const isQuick = options.quick === true;
  const [before] = loadavg();
  const result = { kernels: null, start: null, files: null, gguf: null, mixture: null, chromium: null };
  if (!options.files) result.kernels = kernelRows(isQuick);
  if (!options.kernels) Object.assign(result, fileResults(isQuick, options['peer-llama-quantize']));
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown processor',
    cores: availableParallelism(),
    node: process.versions.node,
    date: new Date().toISOString().slice(0, 10),
    load: [before, loadavg()[0]],
  };
  const json = `${JSON.stringify({ machine, ...result }, null, 2)}\n`;
  const markdown = markdownOf({ machine, ...result });
  if (options.out !== undefined) {
    const folder = resolve(process.env.INIT_CWD ?? process.cwd(), options.out);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'bench.json'), json);
    writeFileSync(join(folder, 'bench.md'), markdown);
  }
  process.stdout.write(options.json ? json : markdown);
});
