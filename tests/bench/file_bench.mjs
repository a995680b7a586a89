// Whole files through the library in Node, F32 to int4 group 128 with the error of every tensor, as one JSON document:
//   pairs    the same weights by one and two workers, llama-quantize Q4_0 with one and two threads, and a plain copy, taking turns,
//            so that a slow spell of a shared machine hits all alike; the ratios of each turn, their medians
//   growth   one worker, from 1 MiB to 8 GiB: what a run costs beside its bytes
//   memory   peak over bare Node for budgets of 64, 256 and 512 MiB, and of a sparse 12 GiB file with 256 MiB by 0, 1 and 2
//            workers; all outputs of one input must be the same bytes
//   file_bench.mjs [--quick] [--runs N] [--only PART] [--peer-llama-quantize PATH]        progress on stderr
// Files above 1 GiB are sparse: zeros, which the file system makes up, so that the disk need not hold them. GB/s = 10^9 input bytes
// per second of wall time of quantizeModel, files flushed to the disk at its end.
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { copy, llamaQuantize, onnxruntimeRate } from './file_peers.mjs';
import { quantize } from './file_process.mjs';
import { weights, writeGguf, writeSafetensors, writeSparseSafetensors } from './model_files.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    runs: { type: 'string' },
    only: { type: 'string' },
    'peer-llama-quantize': { type: 'string' },
  },
});
const isQuick = options.quick === true;
const runs = Number(options.runs ?? (isQuick ? 3 : 7));
const square = [4096, 4096];
const mebibyte = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), 'wasmquant-bench-'));
const say = (text) => process.stderr.write(`${text}\n`);
const upProj = (layer, shape) => ({ name: `model.layers.${layer}.mlp.up_proj.weight`, shape });
const rate = (bytes, milliseconds) => bytes / 1e6 / milliseconds;
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** The same bytes from every run over one input. */
function checkSame(rows, what) {
  if (rows.some(({ sha256 }) => sha256 !== rows[0].sha256)) throw new Error(`${what} changed the output`);
  return rows;
}

function pairs(block) {
  const layers = isQuick ? 4 : 16;
  const input = join(folder, 'model.safetensors');
  writeSafetensors(
    input,
    Array.from({ length: layers }, (_, layer) => upProj(layer, square)),
    block,
  );
  const gguf = join(folder, 'model.gguf');
  writeGguf(gguf, { layers, shape: square }, block);
  for (const path of [input, gguf]) readFileSync(path); // into the page cache
  const bytes = statSync(input).size;
  const llama = llamaQuantize(options['peer-llama-quantize']);
  const own = (threads) => quantize(input, folder, { threads });
  const threadCounts = [1, 2].filter((threads) => threads <= availableParallelism());
  const cpus = [];
  const turns = Array.from({ length: runs }, (_, run) => {
    const ours = checkSame(threadCounts.map(own), 'the number of workers');
    const turn = { start: ours[0].startMilliseconds };
    const cpu = {};
    for (const [at, threads] of threadCounts.entries()) {
      turn[`own${threads}`] = ours[at].milliseconds;
      cpu[`own${threads}`] = ours[at].cpuMilliseconds;
      if (!llama) continue;
      const peer = llama(gguf, join(folder, 'peer.gguf'), threads);
      turn[`llama${threads}`] = peer.milliseconds;
      cpu[`llama${threads}`] = peer.cpuMilliseconds;
    }
    turn.copy = copy(input, join(folder, 'copy'));
    say(
      `turn ${run + 1} of ${runs}: ${Object.entries(turn)
        .map(([name, ms]) => `${name} ${ms.toFixed(0)} ms`)
        .join(', ')}`,
    );
    cpus.push(cpu);
    return turn;
  });
  rmSync(input);
  rmSync(gguf);
  const ratio = (above, below) => {
    const ratios = turns.map((turn) => turn[above] / turn[below]).filter(Number.isFinite);
    return ratios.length === 0
      ? null
      : { median: median(ratios), smallest: Math.min(...ratios), largest: Math.max(...ratios) };
  };
  const names = Object.keys(turns[0]).filter((name) => name !== 'start');
  return {
    bytes,
    runs,
    gigabytesPerSecond: Object.fromEntries(
      names.map((name) => [
        name,
        {
          fastest: rate(bytes, Math.min(...turns.map((turn) => turn[name]))),
          median: rate(bytes, median(turns.map((turn) => turn[name]))),
        },
      ]),
    ),
    ratios: {
      'one worker to llama-quantize, one thread': ratio('llama1', 'own1'),
      'two workers to llama-quantize, two threads': ratio('llama2', 'own2'),
      'two workers to one': ratio('own1', 'own2'),
      'one worker to a copy of the file': ratio('copy', 'own1'),
    },
    // Does not depend on what else the machine does, or hardly.
    cpuSecondsPerGigabyte: Object.fromEntries(
      Object.keys(cpus[0]).map((name) => [name, Math.min(...cpus.map((cpu) => cpu[name])) / (bytes / 1e6)]),
    ),
    startMilliseconds: Math.min(...turns.map(({ start }) => start)),
    onnxruntime: onnxruntimeRate(),
  };
}

function growth(block) {
  const sizes = isQuick ? [1, 16, 64, 256] : [1, 16, 64, 256, 1024, 4096, 8192];
  return sizes.map((mebibytes) => {
    const input = join(folder, 'model.safetensors');
    const shape = mebibytes < 64 ? [256 * mebibytes, 1024] : square;
    const tensors = Array.from({ length: Math.max(1, mebibytes / 64) }, (_, layer) => upProj(layer, shape));
    const isSparse = mebibytes > 1024;
    if (isSparse) writeSparseSafetensors(input, tensors);
    else writeSafetensors(input, tensors, block);
    const bytes = statSync(input).size;
    const results = Array.from({ length: isSparse ? 1 : 3 }, () => quantize(input, folder, { threads: 1 }));
    rmSync(input);
    const milliseconds = Math.min(...results.map((result) => result.milliseconds));
    const peakBytes = Math.max(...results.map((result) => result.peakBytes - result.baseBytes));
    say(`${mebibytes} MiB: ${milliseconds.toFixed(0)} ms`);
    return { bytes, isSparse, milliseconds, gigabytesPerSecond: rate(bytes, milliseconds), peakBytes };
  });
}

function memory(block) {
  const row = (input, budget, threads) => {
    const { baseBytes, peakBytes, milliseconds, sha256 } = quantize(input, folder, {
      threads,
      memory: budget * mebibyte,
    });
    const addedBytes = peakBytes - baseBytes;
    say(`budget ${budget} MiB, ${threads} workers: ${(addedBytes / mebibyte).toFixed(0)} MiB over bare Node`);
    if (addedBytes > budget * mebibyte) throw new Error(`a budget of ${budget} MiB took ${addedBytes} bytes`);
    return {
      bytes: statSync(input).size,
      budgetBytes: budget * mebibyte,
      threads,
      baseBytes,
      addedBytes,
      milliseconds,
      sha256,
    };
  };
  const input = join(folder, 'model.safetensors');
  writeSafetensors(
    input,
    Array.from({ length: 8 }, (_, layer) => upProj(layer, square)),
    block,
  );
  const budgets = [64, 256, 512].flatMap((budget) => [1, 2].map((threads) => row(input, budget, threads)));
  rmSync(input);
  const layers = isQuick ? 32 : 152; // with the large tensor 4.5 and 12 GiB
  const large = [upProj(0, [163840, 4096]), ...Array.from({ length: layers }, (_, at) => upProj(at + 1, square))];
  writeSparseSafetensors(input, large);
  const sparse = [0, 1, 2].map((threads) => row(input, 256, threads));
  rmSync(input);
  return { budgets: checkSame(budgets, 'budget or workers'), sparse: checkSame(sparse, 'the number of workers') };
}

try {
  const block = weights(square[0] * square[1], 1);
  const parts = Object.entries({ pairs, growth, memory }).filter(([name]) => name.includes(options.only ?? ''));
  const result = Object.fromEntries(parts.map(([name, measure]) => [name, measure(block)]));
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
