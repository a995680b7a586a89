// The lines that the guide on larger models gives to schedulers, run as they stand by local processes: GNU parallel where it is
// installed, xargs, the Slurm script with the variables of its array, the command of the Kubernetes Job with its index.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fencesOf } from '../../docs/fences.mjs';
import { findProgram } from '../../setup/command.mjs';
import { cliPath, scratch, start, tinyLlama } from '../cli/process.mjs';

const guide = readFileSync(join(import.meta.dirname, '../../../web/docs/larger-models.md'), 'utf8');
const fences = fencesOf(guide);
const script = (word) => fences.find(({ language, code }) => language === 'bash' && code.includes(word)).code;
const digestOf = (folder) =>
  readdirSync(folder)
    .sort()
    .map((name) => [name, readFileSync(join(folder, name)).toString('base64')]);

/** A folder with the model, and a PATH whose npx runs the built command. */
async function machine(t) {
  const folder = scratch(t);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const npx = `#!/bin/sh\n[ "$1" = --yes ] && shift\nshift\nexec '${process.execPath}' '${cliPath}' "$@"\n`;
  writeFileSync(join(bin, 'npx'), npx);
  chmodSync(join(bin, 'npx'), 0o755);
  symlinkSync(tinyLlama, join(folder, 'my-model'));
  const sh = async (code, variables = {}) => {
    const env = { ...variables, PATH: `${bin}:${process.env.PATH}`, HOME: folder };
    const { code: status, stderr } = await start([`cd '${folder}' && ${code}`], { command: ['bash', '-c'], env }).done;
    assert.equal(status, 0, stderr);
  };
  await sh('npx wasmquant quantize ./my-model -o ./whole --preset int4_wo_128 --threads 1');
  const merged = async () => {
    await sh('test -f out/config.json || npx wasmquant merge-index ./out');
    assert.deepEqual(digestOf(join(folder, 'out')), digestOf(join(folder, 'whole')));
    rmSync(join(folder, 'out'), { recursive: true });
  };
  return { sh, merged };
}

const parallel = findProgram('parallel');
test('GNU parallel', { skip: parallel ? false : 'parallel is not installed' }, async (t) => {
  const { sh, merged } = await machine(t);
  await sh(script('| parallel'));
  await merged();
});

test('xargs', async (t) => {
  const { sh, merged } = await machine(t);
  await sh(script('| xargs'));
  await merged();
});

test('a Slurm array, with one task repeated', async (t) => {
  const { sh, merged } = await machine(t);
  const code = script('#SBATCH');
  const [, first, last] = /--array=(\d+)-(\d+)/.exec(code);
  const task = (id) =>
    sh(code, { SLURM_ARRAY_TASK_ID: String(id), SLURM_ARRAY_TASK_COUNT: last, SLURM_CPUS_PER_TASK: '1' });
  assert.equal(first, '1');
  await Promise.all(Array.from({ length: Number(last) }, (_, at) => task(at + 1)));
  await task(2);
  await merged();
});

test('the pods of the Kubernetes Job', async (t) => {
  const { sh, merged } = await machine(t);
  const manifest = fences.find(({ language }) => language === 'yaml').code;
  const [, command] = /^ *command:\s*(\[[^\]]*\])/m.exec(manifest);
  const [shell, flag, code] = JSON.parse(command.replace(/,\s*\]$/, ']'));
  assert.deepEqual([shell, flag], ['sh', '-c']);
  const completions = Number(/completions: (\d+)/.exec(manifest)[1]);
  const quoted = `sh -c '${code.replaceAll("'", "'\\''")}'`;
  const pods = Array.from({ length: completions }, (_, index) => sh(quoted, { JOB_COMPLETION_INDEX: String(index) }));
  await Promise.all(pods);
  await merged();
});
