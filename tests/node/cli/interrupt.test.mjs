// SIGINT and SIGTERM in the middle of a run: exit code, no files, nothing half written.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { scratch, start, writeZeros } from './process.mjs';

const kRows = 4096;
const kColumns = 4096;
const kTensorBytes = 4 * kRows * kColumns;
const kFirstBytes = 320 * 2 ** 20;
const kAttempts = 4;
/** The signal is sent when this much of the output is on disk. */
const kBegunBytes = 4 * 2 ** 20;

function largeModel(folder, bytes) {
  const tensors = {};
  for (let layer = 0; layer * kTensorBytes < bytes; layer++)
    tensors[`model.layers.${layer}.mlp.up_proj.weight`] = [kRows, kColumns];
  return writeZeros(join(folder, `model-${bytes}.safetensors`), tensors);
}

/** Bytes below a folder that have been written (files are made sparse at their full size first). */
function bytesWritten(folder) {
  let bytes = 0;
  let names = [];
  try {
    names = readdirSync(folder, { recursive: true });
  } catch {} // a folder in it was renamed or removed just now
  for (const name of names) {
    const found = statSync(join(folder, name), { throwIfNoEntry: false });
    if (found?.isFile()) bytes += 512 * found.blocks;
  }
  return bytes;
}

/** Starts a run and signals it once part of its output is on disk. Resolves to null when the run was faster than that. */
async function interrupted(model, folder, signals, flags = []) {
  const place = join(folder, `place-${signals.join('-')}-${Date.now()}`);
  mkdirSync(place);
  const { child, done } = start(['quantize', model, '-o', join(place, 'out'), '-p', 'int8', '-t', '1', ...flags]);
  while (child.exitCode === null && bytesWritten(place) < kBegunBytes) await sleep(2);
  const begun = bytesWritten(place);
  if (child.exitCode === null) for (const signal of signals) child.kill(signal);
  const result = await done;
  return result.code === 0 ? null : { ...result, place, begun };
}

/** Retries with a larger model until a run was caught in the middle, so that the test cannot pass without an interruption. */
async function caught(t, signals, flags) {
  const folder = scratch(t);
  for (let attempt = 0, bytes = kFirstBytes; attempt < kAttempts; attempt++, bytes *= 2) {
    const result = await interrupted(largeModel(folder, bytes), folder, signals, flags);
    if (result) return result;
  }
  return assert.fail(
    `${kAttempts} runs, the last of ${(kFirstBytes * 2 ** (kAttempts - 1)) / 2 ** 30} GiB, ended before the signal`,
  );
}

for (const [signal, exitCode, word] of [
  ['SIGINT', 130, 'interrupted'],
  ['SIGTERM', 143, 'terminated'],
  ['SIGHUP', 129, 'terminated'],
  ['SIGQUIT', 131, 'terminated'],
  ['SIGXCPU', 152, 'terminated'],
]) {
  test(`${signal} in the middle leaves no files and exits with ${exitCode}`, { timeout: 120_000 }, async (t) => {
    const { code, stdout, stderr, place, begun } = await caught(t, [signal]);
    assert.ok(begun >= kBegunBytes, `${begun} bytes were written when the signal came`);
    assert.equal(code, exitCode, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, new RegExp(`${word}; nothing was written`));
    assert.deepEqual(readdirSync(place), []);
  });
}

test('an interrupted run with --json reports it in its one document', { timeout: 120_000 }, async (t) => {
  const { code, stdout, stderr, place } = await caught(t, ['SIGINT'], ['--json']);
  assert.equal(code, 130, stderr);
  assert.equal(stderr, '');
  assert.equal(JSON.parse(stdout).error.code, 'interrupted');
  assert.deepEqual(readdirSync(place), []);
});

test('a signal ends a command that waits for stdin', { timeout: 20_000 }, async () => {
  const { child, done } = start(['config', 'check', '-'], { keepStdin: true });
  // More than a pipe holds: it is taken once the command reads.
  await new Promise((taken) => child.stdin.write(' '.repeat(4 * 2 ** 20), taken));
  assert.equal(child.exitCode, null, 'it waits');
  child.kill('SIGINT');
  assert.equal((await done).code, 130);
});

test('a signal is handled while the engine plans', { timeout: 120_000 }, async (t) => {
  const folder = scratch(t);
  const tensors = {};
  for (let layer = 0; layer < 10_000; layer++) tensors[`model.layers.${layer}.mlp.up_proj.weight`] = [1, 32];
  const model = writeZeros(join(folder, 'model.safetensors'), tensors);
  const exclude = Array.from({ length: 1600 }, (_, at) => `re:.*block${at}.*(q|k|v)_proj`);
  const config = join(folder, 'config.json');
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  writeFileSync(config, JSON.stringify({ global_quant_config: { weight }, exclude }));
  for (const [signal, exitCode, flags] of [
    ['SIGINT', 130, []],
    ['SIGTERM', 143, ['--json']],
  ]) {
    const { child, done } = start(['plan', model, '-c', config, ...flags]);
    await sleep(1500);
    assert.equal(child.exitCode, null, 'it plans');
    const sent = performance.now();
    child.kill(signal);
    const { code, stdout, stderr } = await done;
    assert.equal(code, exitCode, stderr);
    assert.ok(performance.now() - sent < 5000, `${performance.now() - sent} ms`);
    assert.match(flags.length > 0 ? JSON.parse(stdout).error.message : stderr, /; nothing was written/);
  }
});
