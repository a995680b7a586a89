// A list of presets: an output each, with the bytes of single runs, and nothing begins that cannot be finished.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { wordModel } from '../onnx/model.mjs';
import { cli, cliJson, scratch, tinyLlama } from './process.mjs';

test('each preset has the file of its own run, and a row', async (t) => {
  const [folder, single] = [scratch(t), scratch(t)];
  const report = join(scratch(t), 'report.json');
  const list = ['quantize', tinyLlama, '--preset', 'q4_k_m,Q8_0', '-o', join(folder, 'new'), '--report', report];
  const { code, stdout, stderr } = await cli(list);
  assert.equal(code, 0, stderr);
  const files = readdirSync(join(folder, 'new'));
  assert.deepEqual(files, ['bf16-Q4_K_M.gguf', 'bf16-Q8_0.gguf']);
  for (const [preset, name] of [
    ['q4_k_m', files[0]],
    ['q8_0', files[1]],
  ]) {
    assert.equal((await cli(['quantize', tinyLlama, '--preset', preset, '-o', join(single, name)])).code, 0);
    assert.deepEqual(readFileSync(join(folder, 'new', name)), readFileSync(join(single, name)));
    assert.match(stdout, new RegExp(`^${preset} +\\S+${name.replaceAll('.', '\\.')} `, 'm'));
  }
  const { runs } = JSON.parse(readFileSync(report, 'utf8'));
  assert.deepEqual(
    runs.map(({ preset, format }) => [preset, format]),
    [
      ['q4_k_m', 'gguf'],
      ['q8_0', 'gguf'],
    ],
  );
  for (const { totals } of runs) assert.ok(totals.quantized > 20);
});

test('presets of checkpoints become folders, and the document has a report of each', async (t) => {
  const folder = scratch(t);
  const { code, document } = await cliJson(['quantize', tinyLlama, '--preset', 'int8,int4_wo_32', '-o', folder]);
  assert.equal(code, 0);
  assert.deepEqual(
    document.runs.map(({ preset, output }) => [preset, output]),
    ['int8', 'int4_wo_32'].map((preset) => [preset, join(folder, `bf16-${preset}`)]),
  );
  for (const { output } of document.runs) assert.ok(existsSync(join(output, 'config.json')));
});

for (const [title, more, message] of [
  ['a file as output', ['int8,int4_wo_32', '-o', 'one.safetensors'], /--output names a file, and --preset several/],
  ['a preset twice', ['q8_0,q8_0'], /names q8_0 twice/],
  ['an unknown preset', ['q8_0,q9_9'], /q9_9/],
  ['shards', ['int8,int4_wo_32', '--shards', '1/2'], /--shards goes with one preset/],
  ['a file to resume', ['int8,q8_0', '--resume'], /--resume continues in folders/],
  ['a text for one preset', ['int8', '--text', 'x.txt'], /--text goes with several presets/],
  ['the speed of one preset', ['int8', '--measure-speed'], /--measure-speed goes with several presets/],
  ['the speed of no graph', ['int8,int4_wo_32', '--measure-speed'], /--measure-speed is for ONNX models/],
])
  test(`${title}: an error before anything is written`, async (t) => {
    const cwd = scratch(t);
    const { code, stderr } = await cli(['quantize', tinyLlama, '--preset', ...more], { cwd });
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
    assert.deepEqual(readdirSync(cwd), []);
  });

test('an output that is there already stops all runs before the first', async (t) => {
  const cwd = scratch(t);
  mkdirSync(join(cwd, 'out'));
  const there = join(cwd, 'out/bf16-Q8_0.gguf');
  writeFileSync(there, 'mine');
  const command = ['quantize', tinyLlama, '--preset', 'q4_k_m,q8_0', '-o', 'out'];
  const { code, stderr } = await cli(command, { cwd });
  assert.equal(code, 1);
  assert.match(stderr, /it is there already/);
  assert.match(stderr, /bf16-Q8_0\.gguf/);
  assert.deepEqual(readdirSync(join(cwd, 'out')), ['bf16-Q8_0.gguf']);
  assert.equal(readFileSync(there, 'utf8'), 'mine');
  assert.equal((await cli([...command, '--force'], { cwd })).code, 0);
  assert.ok(readFileSync(there).subarray(0, 4).equals(Buffer.from('GGUF')));
});

test('an interrupted list is resumed: what is there stays, and the rest is done', async (t) => {
  const [folder, whole] = [scratch(t), scratch(t)];
  const list = ['quantize', tinyLlama, '--preset', 'int8,int4_wo_32', '-o'];
  assert.equal((await cli([...list, whole])).code, 0);
  assert.equal((await cli(['quantize', tinyLlama, '--preset', 'int8', '-o', join(folder, 'bf16-int8')])).code, 0);
  const refused = await cli([...list, folder]);
  assert.equal(refused.code, 1);
  assert.deepEqual(readdirSync(folder), ['bf16-int8']);
  const { code, stderr } = await cli([...list, folder, '--resume']);
  assert.equal(code, 0, stderr);
  const names = readdirSync(whole, { recursive: true }).sort();
  assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), names);
  for (const name of names.filter((path) => path.endsWith('.safetensors')))
    assert.deepEqual(readFileSync(join(folder, name)), readFileSync(join(whole, name)), name);
});

test('--text: the KLD of each, as evaluate --against finds it', async (t) => {
  const folder = scratch(t);
  const text = join(folder, 'text.txt');
  writeFileSync(text, 'The quick brown fox jumps over the lazy dog, and nobody had seen it before. '.repeat(30));
  const model = join(tinyLlama, '..');
  const list = ['quantize', model, '--preset', 'int8,int4_wo_32', '-o', join(folder, 'out'), '--text', text];
  const { code, document } = await cliJson(list);
  assert.equal(code, 0);
  const [int8, int4] = document.runs.map(({ divergence }) => divergence.meanKld);
  assert.ok(int8 > 0 && int4 > 10 * int8, `${int8} ${int4}`);
  const evaluated = await cliJson(['evaluate', document.runs[1].output, '--against', model, '--text', text]);
  assert.equal(evaluated.document.divergence.meanKld, int4);
  const { stdout } = await cli([...list, '--force']);
  assert.match(stdout, new RegExp(` KLD .*\n.*\n.*${int4.toFixed(5)} ± `));
});

test('--text of a model whose tokenizer is missing: an error before anything is written', async (t) => {
  const cwd = scratch(t);
  writeFileSync(join(cwd, 'text.txt'), 'Once upon a time');
  const model = join(cwd, 'model.onnx');
  writeFileSync(model, wordModel(50));
  const { code, stderr } = await cli(
    ['quantize', model, '--preset', 'int8,int4_wo_32', '-o', 'out', '--text', 'text.txt'],
    { cwd },
  );
  assert.equal(code, 1);
  assert.match(stderr, /tokenizer/);
  assert.deepEqual(readdirSync(cwd).sort(), ['model.onnx', 'text.txt']);
});

test('--measure-speed: outputs and time of a run of each ONNX file', async (t) => {
  const folder = scratch(t);
  const model = join(folder, 'model.onnx');
  writeFileSync(model, wordModel(50));
  const command = ['quantize', model, '--preset', 'int8,int4_wo_32', '-o', join(folder, 'out'), '--measure-speed'];
  const { code, document } = await cliJson(command);
  assert.equal(code, 0);
  for (const { outputs, reason } of document.runs) {
    assert.equal(reason, undefined);
    assert.ok(outputs.error > 0 && outputs.error < 1);
    assert.ok(outputs.speed.milliseconds.median > 0);
  }
});
