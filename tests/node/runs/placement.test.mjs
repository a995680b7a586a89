// Files that replace those of an earlier output: all or none, also when a step fails or the process is killed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { placeFiles, undoPlacement } from '../../../dist/io/node_placement.js';
import { cli } from '../cli/process.mjs';
import { scratchFolder, tinyLlama } from '../scratch.mjs';

const oldFiles = [
  'model-1.safetensors',
  'model-2.safetensors',
  'only-old.safetensors',
  'onnx/model.onnx',
  'config.json',
];
const newFiles = [
  'model-1.safetensors',
  'model-2.safetensors',
  'only-new.safetensors',
  'onnx/model.onnx',
  'config.json',
];
const foreign = 'notes.md';

function write(folder, names, content) {
  for (const name of names) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
}

/** An output folder with old files, and a partial folder in it with new ones. */
function setUp(t) {
  const root = join(scratchFolder(t), 'out');
  const partial = join(root, 'partial');
  write(root, [...oldFiles, foreign], 'old');
  write(partial, newFiles, 'new');
  return { root, partial };
}

function contents(root) {
  const names = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.startsWith(join(root, 'partial')))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(root, name), 'utf8')]));
}
const all = (names, content) =>
  Object.fromEntries([...names, foreign].sort().map((name) => [name, name === foreign ? 'old' : content]));
const leftovers = ['only-old.safetensors'];

test('new files replace old ones, which stay in the partial folder until the end', async (t) => {
  const { root, partial } = setUp(t);
  await placeFiles(partial, root, newFiles, leftovers);
  assert.deepEqual(contents(root), all(newFiles, 'new'));
  await undoPlacement(partial, root);
  assert.deepEqual(contents(root), all(oldFiles, 'old'));
  await undoPlacement(partial, root);
  assert.deepEqual(contents(root), all(oldFiles, 'old'), 'a second time changes nothing');
});

test('a step that fails puts everything back', async (t) => {
  for (const missing of newFiles) {
    const { root, partial } = setUp(t);
    rmSync(join(partial, missing));
    await assert.rejects(placeFiles(partial, root, newFiles, leftovers), { code: 'ENOENT' });
    assert.deepEqual(contents(root), all(oldFiles, 'old'), missing);
    for (const name of newFiles) assert.equal(existsSync(join(partial, name)), name !== missing, 'new files are kept');
  }
});

test('a folder with the name of a file is refused before anything moves', async (t) => {
  const folder = scratchFolder(t);
  const out = join(folder, 'out');
  assert.equal((await cli(['quantize', tinyLlama, '-o', out, '-p', 'int8', '--quiet'])).code, 0);
  const shards = readdirSync(out).filter((name) => name.endsWith('.safetensors'));
  const blocked = join(out, shards.at(-1));
  rmSync(blocked);
  mkdirSync(join(blocked, 'mine'), { recursive: true });
  const before = readdirSync(out).sort();
  const config = readFileSync(join(out, 'config.json'), 'utf8');
  const { code, stderr } = await cli(['quantize', tinyLlama, '-o', out, '-p', 'int4_wo_32', '--force', '--quiet']);
  assert.equal(code, 1);
  assert.match(stderr, /is a folder, but the output needs a file of that name/);
  assert.deepEqual(readdirSync(out).sort(), before);
  assert.equal(readFileSync(join(out, 'config.json'), 'utf8'), config);
});

// Kills the process before its N-th rename.
const killedBefore = (step, partial, root) => `
  import fs from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const { rename } = fs;
  let steps = 0;
  fs.rename = (...paths) => (steps++ === ${step} ? process.kill(process.pid, 'SIGKILL') : rename(...paths));
  syncBuiltinESMExports();
  const { placeFiles } = await import(${JSON.stringify(new URL('../../../dist/io/node_placement.js', import.meta.url).href)});
  await placeFiles(${JSON.stringify(partial)}, ${JSON.stringify(root)}, ${JSON.stringify(newFiles)}, ${JSON.stringify(leftovers)});
`;

test('a process that is killed leaves files of one output only, and they can be put back', async (t) => {
  let step = 0;
  for (; ; ++step) {
    const { root, partial } = setUp(t);
    const script = killedBefore(step, partial, root);
    const { signal, status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    if (status === 0) break;
    assert.equal(signal, 'SIGKILL', stderr);
    const { [foreign]: notes, ...left } = contents(root);
    assert.equal(notes, 'old');
    assert.ok(new Set(Object.values(left)).size <= 1, `killed at step ${step}: ${JSON.stringify(left)}`);
    const isWhole = Object.keys(left).length === (Object.values(left)[0] === 'old' ? oldFiles : newFiles).length;
    assert.equal('config.json' in left, isWhole, `config.json is there if all is (step ${step})`);
    await undoPlacement(partial, root);
    assert.deepEqual(contents(root), all(oldFiles, 'old'), `step ${step}`);
  }
  assert.equal(step, oldFiles.length + newFiles.length, 'each rename was a step');
});
