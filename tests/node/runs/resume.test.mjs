// Runs that go on where an interrupted one ended: the same files and the same report as of an undisturbed run, whatever
// was finished; other work, damaged files and other targets are told apart.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { writeShards } from '../../faults/model.mjs';
import { cli } from '../cli/process.mjs';
import { scratchFolder, tinyLlama } from '../scratch.mjs';

const journalName = 'wasmquant-run.json';
const preset = 'int4_wo_32';

async function setUp(t) {
  const folder = scratchFolder(t);
  const source = writeShards(join(folder, 'model'), 10);
  const quantizer = await createQuantizer({ threads: 1 });
  t.after(() => quantizer[Symbol.asyncDispose]());
  const run = async (target, options = {}, config = preset) => {
    const model = await quantizer.open(source);
    try {
      return await quantizer.quantizeModel(model, config, { target, resume: true, ...options });
    } finally {
      await model.close();
    }
  };
  return { folder, source, run };
}

const contents = (folder) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name)).toString('base64')]));
const partials = (folder) => readdirSync(folder).filter((name) => name.endsWith('.partial'));
const withoutTime = ({ durationMs, resumedFiles, ...report }) => report;

/** Interrupts a run into `target` as soon as a file is kept; the partial folder. Runs that were faster are repeated. */
async function interrupt(run, target, place, options = {}) {
  const isKept = () => {
    const path = join(place, partials(place)[0] ?? '', journalName);
    return existsSync(path) && JSON.parse(readFileSync(path, 'utf8')).files.length > 0;
  };
  for (let attempt = 0; attempt < 20; ++attempt) {
    const controller = new AbortController();
    // Looks at every turn of the event loop, which each file of a run takes many of: progress is told every 50 ms, and a
    // fast machine is done by then.
    let watch = setImmediate(function look() {
      if (isKept()) controller.abort(new Error('enough'));
      else watch = setImmediate(look);
    });
    const outcome = await run(target, { ...options, signal: controller.signal }).catch((error) => error);
    clearImmediate(watch);
    if (outcome.message === 'enough') return join(place, partials(place)[0]);
    assert.ok(outcome.files, `the run failed: ${outcome.message}`);
    for (const { name } of outcome.files) rmSync(join(target, name));
    if (target !== place) rmSync(target, { recursive: true });
  }
  return assert.fail('20 runs were faster than their interruption');
}

test('a resumed run continues after the finished files: same bytes, same report', async (t) => {
  const { folder, run } = await setUp(t);
  const whole = await run(join(folder, 'whole'), { resume: false });
  for (const isThere of [false, true]) {
    const place = join(folder, `place-${isThere}`);
    const out = isThere ? place : join(place, 'out');
    mkdirSync(place);
    if (isThere) writeFileSync(join(out, 'earlier.txt'), 'kept\n');
    const options = { overwrite: isThere };
    const partial = await interrupt(run, out, place, options);
    if (!isThere) assert.ok(!existsSync(out), 'the output is there before it is whole');
    const names = readdirSync(partial);
    assert.ok(names.includes(journalName));
    assert.ok(names.some((name) => name.endsWith('.safetensors')));
    assert.ok(!names.includes('config.json'), 'files that were not finished are gone');
    const report = await run(out, options);
    assert.ok(report.resumedFiles >= 1);
    assert.deepEqual(withoutTime(report), withoutTime(whole));
    const found = contents(out);
    if (isThere) delete found['earlier.txt'];
    assert.deepEqual(found, contents(join(folder, 'whole')));
    assert.deepEqual(partials(place), []);
  }
});

test('an interrupted run of other work is refused, and removed by a run that does not resume', async (t) => {
  const { folder, source, run } = await setUp(t);
  const [place, out] = [join(folder, 'place'), join(folder, 'place/out')];
  mkdirSync(place);
  const partial = await interrupt(run, out, place);
  await assert.rejects(run(out, {}, 'int8'), (error) => {
    assert.equal(error.code, 'target-invalid');
    assert.match(
      error.message,
      /interrupted run with another config, calibration or format; run without resume to start again/,
    );
    return true;
  });
  await assert.rejects(run(out, { format: 'quark' }), /another config, calibration or format/);
  const shard = join(
    source,
    readdirSync(source).find((name) => name.endsWith('.safetensors')),
  );
  utimesSync(shard, 1, 1);
  await assert.rejects(run(out), /with another input \(.*safetensors, \d+ bytes, changed .*; now /);
  assert.ok(existsSync(partial), 'a refusal left nothing to resume');
  const report = await run(out, { resume: false });
  assert.equal(report.resumedFiles, undefined);
  assert.deepEqual(partials(place), []);
});

test('a finished file that has changed is written again', async (t) => {
  const { folder, run } = await setUp(t);
  await run(join(folder, 'whole'), { resume: false });
  const [place, out] = [join(folder, 'place'), join(folder, 'place/out')];
  mkdirSync(place);
  const partial = await interrupt(run, out, place);
  const journal = JSON.parse(readFileSync(join(partial, journalName), 'utf8'));
  for (const { name } of journal.files) {
    const bytes = readFileSync(join(partial, name));
    bytes[bytes.length - 1] ^= 1;
    writeFileSync(join(partial, name), bytes);
  }
  const report = await run(out);
  assert.equal(report.resumedFiles, 0);
  assert.deepEqual(contents(out), contents(join(folder, 'whole')));
});

test('a broken journal counts as missing, and names in it cannot leave the folder', async (t) => {
  const { folder, run } = await setUp(t);
  await run(join(folder, 'whole'), { resume: false });
  const sha256 = createHash('sha256').update('mine\n').digest('hex');
  const secret = { name: '../secret', bytes: 5, sha256 };
  for (const [number, spoil] of [
    (_, path) => writeFileSync(path, '{"library":'),
    (journal, path) => writeFileSync(path, JSON.stringify({ ...journal, files: 3 })),
    (journal, path) =>
      writeFileSync(path, JSON.stringify({ ...journal, files: [{ ...secret, note: journal.files[0].note }] })),
  ].entries()) {
    const [place, out] = [join(folder, `place-${number}`), join(folder, `place-${number}/out`)];
    mkdirSync(place);
    writeFileSync(join(place, 'secret'), 'mine\n');
    const partial = await interrupt(run, out, place);
    const path = join(partial, journalName);
    spoil(JSON.parse(readFileSync(path, 'utf8')), path);
    assert.equal((await run(out)).resumedFiles, 0);
    assert.equal(readFileSync(join(place, 'secret'), 'utf8'), 'mine\n');
    assert.deepEqual(contents(out), contents(join(folder, 'whole')));
  }
});

test('runs that cannot be resumed say so', async (t) => {
  const { folder, run } = await setUp(t);
  const streams = { write: async () => new WritableStream() };
  await assert.rejects(run(streams), { code: 'argument-invalid' });
  await assert.rejects(run(join(folder, 'out.gguf'), { format: 'gguf' }, '{"dialect":"gguf","recipe":"q8_0"}'), {
    code: 'argument-invalid',
  });
  const quantizer = await createQuantizer({ threads: 0 });
  t.after(() => quantizer[Symbol.asyncDispose]());
  const model = await quantizer.open(readFileSync(join(tinyLlama, 'model.safetensors')));
  await assert.rejects(
    quantizer.quantizeModel(model, preset, { target: join(folder, 'bytes'), resume: true }),
    /cannot be told from another file of its size/,
  );
  assert.deepEqual(partials(folder), []);
});

test('a run that ended while moving its files into a folder continues', async (t) => {
  const { folder, run } = await setUp(t);
  await run(join(folder, 'whole'), { resume: false });
  const out = join(folder, 'out');
  mkdirSync(out);
  const partial = await interrupt(run, out, out);
  const journal = JSON.parse(readFileSync(join(partial, journalName), 'utf8'));
  const [{ name }] = journal.files;
  renameSync(join(partial, name), join(out, name));
  await assert.rejects(run(out), { code: 'target-exists' });
  writeFileSync(join(partial, 'wasmquant-placing.json'), JSON.stringify(['other', '../whole/config.json', name]));
  assert.equal((await run(out)).resumedFiles, journal.files.length);
  assert.deepEqual(contents(out), contents(join(folder, 'whole')));
});

for (const place of ['new folder', 'folder with a file'])
  test(`a run that had ended is done again and compared: the same output is success (${place})`, async (t) => {
    const { folder, run } = await setUp(t);
    const out = join(folder, 'out');
    const whole = await run(out);
    if (place !== 'new folder') writeFileSync(join(out, 'notes.txt'), 'mine\n');
    const before = contents(out);
    const places = Object.fromEntries(readdirSync(out).map((name) => [name, statSync(join(out, name)).mtimeMs]));
    const again = await run(out);
    assert.deepEqual(withoutTime(again), withoutTime(whole));
    assert.deepEqual(contents(out), before);
    for (const [name, time] of Object.entries(places)) assert.equal(statSync(join(out, name)).mtimeMs, time, name);
    assert.deepEqual([...partials(folder), ...partials(out)], []);
    const command = await cli(['quantize', join(folder, 'model'), '-o', out, '-p', preset, '--resume']);
    assert.equal(command.code, 0, command.stderr);
    assert.deepEqual(contents(out), before);

    const shard = join(
      out,
      readdirSync(out).find((name) => name.endsWith('.safetensors')),
    );
    const bytes = readFileSync(shard);
    const refused = async (message, config) => {
      await assert.rejects(run(out, {}, config), { code: 'target-exists', message });
      assert.deepEqual([...partials(folder), ...partials(out)], []);
    };
    await refused(/is a folder with another .*, so not this run's output/, 'int8');
    bytes[bytes.length - 1] ^= 1;
    writeFileSync(shard, bytes);
    await refused(/is a folder with another .*safetensors, so/);
    rmSync(shard);
    await refused(/is a folder without .*safetensors, so/);
  });
