// Whose partial folders count as abandoned: those of processes that have ended, zombies among them, and of ids that belong to
// a later process; never those of processes elsewhere, of which nothing can be known.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { abandonedPartials, isPartial, leavePartial, makePartial } from '../../../dist/io/node_partial.js';
import { scratchFolder } from '../scratch.mjs';

const onLinux = existsSync('/proc/self/ns/pid') && existsSync('/proc/sys/kernel/random/boot_id');
const parts =
  /^(?<name>.*)\.wasmquant-(?<machine>[0-9a-f]{8})-(?<pid>\d+)-(?<start>[0-9a-f]{8})(?<random>[0-9a-f]{8})\.partial$/;
const namesOf = async (folder) => (await abandonedPartials(folder, 'out')).map((path) => basename(path));

/** A folder like that of `path`, of another owner. */
function owned(path, changes) {
  const { name, machine, pid, start, random } = { ...parts.exec(basename(path)).groups, ...changes };
  const other = join(dirname(path), `${name}.wasmquant-${machine}-${pid}-${start}${random}.partial`);
  mkdirSync(other);
  return basename(other);
}

test('a folder of this process counts as abandoned once its run is over', async (t) => {
  const folder = scratchFolder(t);
  const path = await makePartial(folder, 'out');
  assert.ok(isPartial(basename(path)), path);
  assert.deepEqual(await namesOf(folder), []);
  leavePartial(path);
  assert.deepEqual(await namesOf(folder), [basename(path)]);
});

test('ended processes, later ones with their id, and processes elsewhere', { skip: !onLinux }, async (t) => {
  const folder = scratchFolder(t);
  const path = await makePartial(folder, 'out');
  const ended = owned(path, { pid: '4194304' }); // above the largest id
  const reused = owned(path, { pid: String(process.ppid), random: '00000001' });
  owned(path, { machine: '00000000', pid: '4194304' });
  owned(path, { random: '00000002' }); // of another thread of this process
  assert.deepEqual((await namesOf(folder)).sort(), [ended, reused].sort());
});

test('a zombie has ended', { skip: !onLinux }, async (t) => {
  const folder = scratchFolder(t);
  const script = `import { makePartial } from ${JSON.stringify(new URL('../../../dist/io/node_partial.js', import.meta.url).href)};
await makePartial(${JSON.stringify(folder)}, 'out'); setInterval(() => {}, 1000);`;
  // sleep takes the place of the shell, and does not wait for the child.
  const shell = spawn('bash', [
    '-c',
    `"$0" --input-type=module -e "$1" & echo $!; exec sleep 60`,
    process.execPath,
    script,
  ]);
  t.after(() => shell.kill('SIGKILL'));
  const pid = Number(await new Promise((resolve) => shell.stdout.once('data', (text) => resolve(String(text)))));
  const until = async (condition) => {
    for (let left = 400; left > 0 && !(await condition()); left -= 1) await sleep(50);
    assert.ok(await condition());
  };
  const { readdirSync } = await import('node:fs');
  await until(() => readdirSync(folder).length === 1);
  assert.deepEqual(await namesOf(folder), []);
  process.kill(pid, 'SIGKILL');
  await until(() => /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')));
  assert.equal((await namesOf(folder)).length, 1);
});

test('file names of every allowed length', async (t) => {
  const folder = scratchFolder(t);
  for (const name of ['n'.repeat(255), 'ß'.repeat(127)]) {
    const path = await makePartial(folder, name);
    leavePartial(path);
    assert.deepEqual(await abandonedPartials(folder, name), [path]);
    assert.deepEqual(await abandonedPartials(folder, `${name.slice(0, -1)}x`), []);
    renameSync(path, join(folder, name));
  }
});
