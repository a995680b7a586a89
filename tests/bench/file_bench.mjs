// Whole files through the library in Node: speed on a 1 GiB model in the page cache for one and two workers, and peak
// memory on a sparse 6 GiB model for 0, 1 and 2 workers, whose outputs must be the same bytes.
//   --json                         stdout is one JSON document
//   --peer-llama-quantize PATH     also time llama-quantize (Q4_0) on the same weights
// GB/s = 10^9 input bytes per second of wall time, the fastest of three runs.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { weights, writeGguf, writeSafetensors, writeSparseSafetensors } from './model_files.mjs';

const { values: options } = parseArgs({
  options: { json: { type: 'boolean' }, 'peer-llama-quantize': { type: 'string' } },
});
const preset = 'int4_wo_128';
const square = [4096, 4096];
const layers = 16;
const runs = 3;
const say = (text) => options.json || process.stdout.write(`${text}\n`);
const upProj = (layer, shape) => ({ name: `model.layers.${layer}.mlp.up_proj.weight`, shape });

/** Quantizes in a child process; the output is removed afterwards. */
function quantize(input, folder, threads) {
  const output = join(folder, 'out');
  mkdirSync(output);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, 'file_run.mjs'), input, join(output, 'model'), preset, String(threads)],
    {
      encoding: 'utf8',
    },
  );
  rmSync(output, { recursive: true });
  if (status !== 0) throw new Error(`file_run.mjs failed with exit code ${status}: ${stderr}`);
  return JSON.parse(stdout);
}

function fastest(run) {
  return Math.min(...Array.from({ length: runs }, run));
}

function measureSpeed(folder, block) {
  const input = join(folder, 'model.safetensors');
  writeSafetensors(
    input,
    Array.from({ length: layers }, (_, layer) => upProj(layer, square)),
    block,
  );
  const bytes = statSync(input).size;
  readFileSync(input); // into the page cache
  return [1, 2].map((threads) => {
    const milliseconds = fastest(() => quantize(input, folder, threads).milliseconds);
    const row = { name: 'wasmquant', threads, bytes, milliseconds, gigabytesPerSecond: bytes / 1e6 / milliseconds };
    say(
      `${preset}, ${threads} worker${threads > 1 ? 's' : ''}: ${row.gigabytesPerSecond.toFixed(2)} GB/s of input (${(milliseconds / 1000).toFixed(2)} s)`,
    );
    return row;
  });
}

function measurePeer(folder, block, program) {
  const input = join(folder, 'model.gguf');
  writeGguf(input, { layers, shape: square }, block);
  const bytes = statSync(input).size;
  readFileSync(input);
  return [1, 2].map((threads) => {
    const milliseconds = fastest(() => {
      const start = performance.now();
      const { status, stderr, error } = spawnSync(
        program,
        ['--pure', input, join(folder, 'peer.gguf'), 'Q4_0', String(threads)],
        { encoding: 'utf8' },
      );
      if (error) throw error;
      if (status !== 0) throw new Error(`${program} failed with exit code ${status}: ${stderr.slice(-1000)}`);
      return performance.now() - start;
    });
    const row = {
      name: 'llama-quantize',
      threads,
      bytes,
      milliseconds,
      gigabytesPerSecond: bytes / 1e6 / milliseconds,
    };
    say(
      `llama-quantize Q4_0, ${threads} thread${threads > 1 ? 's' : ''}: ${row.gigabytesPerSecond.toFixed(2)} GB/s of input (${(milliseconds / 1000).toFixed(2)} s)`,
    );
    return row;
  });
}

/** A 6 GiB model, one tensor of which alone passes 2 GiB. */
function measureMemory(folder) {
  const input = join(folder, 'sparse.safetensors');
  const rest = Array.from({ length: 56 }, (_, layer) => upProj(layer + 1, square));
  const bytes = writeSparseSafetensors(input, [upProj(0, [163840, 4096]), ...rest]);
  const rows = [0, 1, 2].map((threads) => {
    const { peakBytes, sha256, milliseconds } = quantize(input, folder, threads);
    say(
      `sparse ${(bytes / 2 ** 30).toFixed(1)} GiB, ${threads} workers: peak ${(peakBytes / 2 ** 20).toFixed(0)} MiB, ${(milliseconds / 1000).toFixed(1)} s, sha256 ${sha256.slice(0, 16)}`,
    );
    return { threads, bytes, peakBytes, milliseconds, sha256 };
  });
  if (rows.some(({ sha256 }) => sha256 !== rows[0].sha256)) throw new Error('the number of workers changed the output');
  return rows;
}

const folder = mkdtempSync(join(tmpdir(), 'wasmquant-bench-'));
try {
  const block = weights(square[0] * square[1], 1);
  const speed = measureSpeed(folder, block);
  const peer = options['peer-llama-quantize'] ? measurePeer(folder, block, options['peer-llama-quantize']) : null;
  if (!peer) say('llama-quantize: not run (give its path with --peer-llama-quantize)');
  else
    say(
      `ratio to llama-quantize: ${speed.map((row, index) => `${(row.gigabytesPerSecond / peer[index].gigabytesPerSecond).toFixed(2)} (${row.threads})`).join(', ')}`,
    );
  const memory = measureMemory(folder);
  if (options.json) process.stdout.write(`${JSON.stringify({ speed, peer, memory }, null, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
