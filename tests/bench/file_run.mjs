// One run of the file bench in a process of its own, so that its peak memory can be read:
//   node tests/bench/file_run.mjs INPUT OUTPUT PRESET THREADS [MEMORY [FORMAT]]
// Prints one JSON line: wall and processor time of quantizeModel, peak resident bytes of the process, those it had before the library was
// loaded, start-up (until the engine can run a kernel), SHA-256 over the output.
import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const [input, output, preset, threads, memory, format = 'compressed-tensors'] = process.argv.slice(2);

/** A line of /proc/self/status in bytes: VmRSS, resident now, or VmHWM, at most, of this process with its threads. */
function residentBytes(name) {
  const line = new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line[1]) * 1024;
}

/** Of a file its digest; of a folder that of the names and bytes of its files. */
async function digest(path) {
  const hash = createHash('sha256');
  const isFolder = statSync(path).isDirectory();
  for (const name of isFolder ? readdirSync(path).sort() : ['']) {
    if (isFolder) hash.update(`${name}\0`);
    for await (const chunk of createReadStream(join(path, name), { highWaterMark: 1 << 20 })) hash.update(chunk);
  }
  return hash.digest('hex');
}

const baseBytes = residentBytes('VmRSS');
const begin = performance.now();
const { createQuantizer } = await import('../../dist/node.js');
const quantizer = await createQuantizer({
  threads: Number(threads),
  ...(memory && { memoryBudgetBytes: Number(memory) }),
});
quantizer.quantize({ data: new Float32Array(4096), shape: [32, 128] }, { dtype: 'int8', qscheme: 'per_tensor' });
const startMilliseconds = performance.now() - begin;
const model = await quantizer.open(input);
const cpu = process.cpuUsage();
const start = performance.now();
const report = await quantizer.quantizeModel(model, preset, { target: output, format });
const milliseconds = performance.now() - start;
const { user, system } = process.cpuUsage(cpu);
const peakBytes = residentBytes('VmHWM');
await model.close();
await quantizer[Symbol.asyncDispose]();
const result = {
  milliseconds,
  cpuMilliseconds: (user + system) / 1000,
  startMilliseconds,
  baseBytes,
  peakBytes,
  threads: report.threads,
  quantized: report.totals.quantized,
  sha256: await digest(output),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
