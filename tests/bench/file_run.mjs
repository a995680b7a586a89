// One run of the file bench in a process of its own, so that its peak memory can be read:
//   node tests/bench/file_run.mjs INPUT OUTPUT PRESET THREADS
// Prints one JSON line: wall time of quantizeModel, peak resident bytes of the process, SHA-256 over the output files.
import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';

const [input, output, preset, threads] = process.argv.slice(2);

/** Peak resident set of this process and its threads: VmHWM of the kernel, in KiB there. */
function peakBytes() {
  const line = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line[1]) * 1024;
}

async function digest(folder) {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).sort()) {
    hash.update(`${name}\0`);
    for await (const chunk of createReadStream(join(folder, name), { highWaterMark: 1 << 20 })) hash.update(chunk);
  }
  return hash.digest('hex');
}

const quantizer = await createQuantizer({ threads: Number(threads) });
const model = await quantizer.open(input);
const start = performance.now();
const report = await quantizer.quantizeModel(model, preset, { target: output, format: 'compressed-tensors' });
const milliseconds = performance.now() - start;
const peak = peakBytes();
await model.close();
await quantizer[Symbol.asyncDispose]();
const result = { milliseconds, peakBytes: peak, quantized: report.totals.quantized, sha256: await digest(output) };
process.stdout.write(`${JSON.stringify(result)}\n`);
