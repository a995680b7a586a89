// Memory of models with many tensors, and with much metadata: each in a process of its own, whose peak the system counts.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cliPath, writeZeros } from '../cli/process.mjs';
import { scratchFolder } from '../scratch.mjs';

const mebibyte = 2 ** 20;

/** Runs the command in a process that adds its peak resident bytes to stderr when it ends. */
function peakOf(folder, ...args) {
  const script = join(folder, 'peak.mjs');
  writeFileSync(
    script,
    `import { readFileSync, writeSync } from 'node:fs';
process.on('exit', () => writeSync(2, /VmHWM:[^\\n]*/.exec(readFileSync('/proc/self/status', 'utf8'))[0]));
await import(${JSON.stringify(cliPath)});`,
  );
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8', timeout: 300_000 });
  assert.equal(status, 0, stderr);
  return Number(/VmHWM:\s*(\d+) kB/.exec(stderr)[1]) * 1024;
}

function writeLayers(path, count) {
  const names = Array.from({ length: count }, (_, number) => `model.layers.${number}.mlp.up_proj.weight`);
  writeZeros(path, Object.fromEntries(names.map((name) => [name, [8, 32]])));
  return path;
}

test('a tensor needs a few kilobytes, in runs, plans and comparisons', { skip: process.platform !== 'linux' }, (t) => {
  const folder = scratchFolder(t);
  const [few, many] = [2_000, 22_000];
  const peaks = [few, many].map((count) => {
    const model = writeLayers(join(folder, `${count}.safetensors`), count);
    const out = join(folder, `${count}.out`);
    const budget = ['-m', '64M', '-t', '1'];
    return {
      quantize: peakOf(folder, 'quantize', model, '-o', out, '-p', 'int8', ...budget),
      plan: peakOf(folder, 'plan', model, '-p', 'int8'),
      compare: peakOf(folder, 'compare', model, out, ...budget),
    };
  });
  // A kilobyte or two above what was measured; as many copies of a tensor's facts again do not fit.
  for (const [command, most] of Object.entries({ quantize: 3500, plan: 4500, compare: 7000 })) {
    const each = (peaks[1][command] - peaks[0][command]) / (many - few);
    assert.ok(each < most, `${command}: ${each.toFixed(0)} bytes for each tensor, at most ${most}`);
  }
});

test('inspect shows only the beginning of long metadata, and copies no more', {
  skip: process.platform !== 'linux',
}, (t) => {
  const folder = scratchFolder(t);
  const path = join(folder, 'model.safetensors');
  const tensors = { 'a.weight': { dtype: 'F32', shape: [1], data_offsets: [0, 4] } };
  const header = Buffer.from(JSON.stringify({ __metadata__: { text: 'x'.repeat(40 * mebibyte) }, ...tensors }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(path, Buffer.concat([length, header, Buffer.alloc(4)]));
  const peak = peakOf(folder, 'inspect', path) / mebibyte;
  assert.ok(peak < 110 + 8 * 40, `${peak.toFixed(0)} MiB`);
});
