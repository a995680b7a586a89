// GGUF to GGUF, one worker beside llama-quantize with one thread, by type: the same F32 model of large matrices, the same
// bytes out, runs of the two taking turns, the fastest of three each. --json: stdout is one JSON document.
// llama-quantize: --peer-llama-quantize PATH, or the one that tests/interop/peers.sh made.
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../setup/command.mjs';
import { weights, writeGguf } from './model_files.mjs';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean' },
    only: { type: 'string', default: '' },
    runs: { type: 'string', default: '3' },
    'peer-llama-quantize': { type: 'string' },
  },
});
const say = (text) => options.json || process.stdout.write(`${text}\n`);
const peers = join(root, 'tests/interop/peers.sh');
const hasPeers = existsSync(join(root, '.peers/.ready'));

/** Recipe, llama-quantize's name of it, number of 64 MiB matrices: fewer where a type takes seconds for each. */
const types = [
  ['q4_0', 'Q4_0', 16],
  ['q8_0', 'Q8_0', 16],
  ['q5_0', 'Q5_0', 8],
  ['q4_k_s', 'Q4_K', 2],
  ['q5_k_s', 'Q5_K', 2],
  ['q6_k', 'Q6_K', 2],
  ['q2_k', 'Q2_K', 2],
  ['iq4_nl', 'IQ4_NL', 1],
];

function timed(command, args) {
  const start = performance.now();
  const { status, stderr, error } = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${command} failed with exit code ${status}: ${stderr.slice(-1000)}`);
  return performance.now() - start;
}

/** llama-quantize's own time, without the start of the peers' root: the clock is inside. */
function peerRun(input, output, type) {
  const own = options['peer-llama-quantize'];
  const [command, first] = own ? [own, []] : [peers, ['run', 'llama-quantize']];
  const overhead = own ? 0 : timed(peers, ['run', 'true']);
  return timed(command, [...first, '--pure', input, output, type, '1']) - overhead;
}

/** Ours: the whole process, with its start, as that of llama-quantize. */
function ownRun(input, output, config) {
  const args = ['dist/cli.js', 'quantize', input, '-o', output, '--config', config, '--threads', '1', '--force'];
  return timed(process.execPath, [...args, '--quiet']);
}

/** Whether the two files end in the same `bytes`: the data of all tensors. */
function sameData(left, right, bytes) {
  const tail = (path) => {
    const file = openSync(path, 'r');
    const buffer = Buffer.alloc(Math.min(bytes, 1 << 28));
    readSync(file, buffer, 0, buffer.length, fstatSync(file).size - buffer.length);
    closeSync(file);
    return buffer;
  };
  return tail(left).equals(tail(right));
}

if (!options['peer-llama-quantize'] && !hasPeers) {
  say('llama-quantize: not run (tests/interop/peers.sh create makes it, or give --peer-llama-quantize PATH)');
  if (options.json) process.stdout.write('null\n');
  process.exit(0);
}
const folder = mkdtempSync(join(tmpdir(), 'wasmquant-bench-'));
const rows = [];
try {
  const shape = [4096, 4096];
  const block = weights(shape[0] * shape[1], 1);
  const input = join(folder, 'model.gguf');
  const [own, peer] = [join(folder, 'own.gguf'), join(folder, 'peer.gguf')];
  say(
    `${'type'.padEnd(10)} ${'input, MiB'.padStart(10)} ${'own, GB/s'.padStart(10)} ${'llama'.padStart(8)} ${'ratio'.padStart(7)}  bytes`,
  );
  let written = 0;
  for (const [recipe, type, layers] of types.filter(([name]) => name.includes(options.only))) {
    if (written !== layers) writeGguf(input, { layers, shape }, block);
    written = layers;
    const config = join(folder, 'config.json');
    writeFileSync(config, JSON.stringify({ dialect: 'gguf', recipe, pure: true }));
    const bytes = statSync(input).size;
    readFileSync(input); // into the page cache
    const times = Array.from({ length: Number(options.runs) }, () => [
      ownRun(input, own, config),
      peerRun(input, peer, type),
    ]);
    const [ours, theirs] = [0, 1].map((index) => Math.min(...times.map((pair) => pair[index])));
    const isSame = sameData(own, peer, statSync(peer).size - 4096);
    const row = {
      recipe,
      bytes,
      own: bytes / 1e6 / ours,
      llamaQuantize: bytes / 1e6 / theirs,
      ratio: theirs / ours,
      isSame,
    };
    rows.push(row);
    say(
      `${recipe.padEnd(10)} ${(bytes / 2 ** 20).toFixed(0).padStart(10)} ${row.own.toFixed(3).padStart(10)} ${row.llamaQuantize.toFixed(3).padStart(8)} ${row.ratio.toFixed(2).padStart(7)}  ${isSame ? 'the same' : 'DIFFERENT'}`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (options.json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
if (rows.some(({ isSame }) => !isSame)) throw new Error('a type has other bytes than llama-quantize');
