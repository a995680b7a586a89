// quantize and compare on a real model: files, report, JSON, refusal to overwrite.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { files } from '../scratch.mjs';
import { cli, cliJson, scratch, tinyLlama, tinyLlamaFile } from './process.mjs';

/** Every file below a folder with its hash. */
function contents(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const hash = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');
  return Object.fromEntries(
    files
      .map(({ parentPath, path, name }) => join(parentPath ?? path, name))
      .sort()
      .map((path) => [path, hash(path)]),
  );
}

test('a sharded folder: files, text, report', async (t) => {
  const folder = scratch(t);
  const out = join(folder, 'out');
  const reportPath = join(folder, 'report.json');
  const before = contents(tinyLlama);
  const { code, stdout, stderr } = await cli([
    'quantize',
    tinyLlama,
    '-o',
    out,
    '-p',
    'int4_wo_32',
    '--report',
    reportPath,
  ]);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '', 'no progress and no logs without a terminal');
  assert.deepEqual(contents(tinyLlama), before, 'the input is as it was');

  const config = JSON.parse(readFileSync(join(out, 'config.json'), 'utf8'));
  assert.equal(config.quantization_config.quant_method, 'compressed-tensors');
  assert.ok(existsSync(join(out, 'generation_config.json')));
  assert.deepEqual(readdirSync(folder).sort(), ['out', 'report.json'], 'no temporary files');
  assert.deepEqual(
    readdirSync(out).filter((name) => /tmp|part/i.test(name) && !/-of-/.test(name)),
    [],
  );

  assert.match(stdout, /of 39 tensors quantized, 5\.15 MB → \S+ MB \(\d+\.\d %\), [45]\.\d\d bits per weight/);
  assert.match(stdout, /done in .*\/s, /);
  const rates = [...stdout.matchAll(/ (\d+\.\d\d) dB /g)].map((match) => Number(match[1]));
  assert.equal(rates.length, 5);
  assert.deepEqual(
    rates,
    [...rates].sort((a, b) => a - b),
    'worst first',
  );
  assert.match(stdout, /LlamaForCausalLM\.from_pretrained\("/);

  const report = JSON.parse(readFileSync(reportPath, 'utf8'));
  const measured = report.tensors.filter((tensor) => tensor.action === 'quantize');
  assert.equal(measured.length, report.totals.quantized);
  assert.ok(measured.every((tensor) => tensor.error.sqnrDb > 10 && tensor.error.sqnrDb < 60));
  assert.equal(Math.min(...measured.map((tensor) => tensor.error.sqnrDb)).toFixed(2), rates[0].toFixed(2));
  for (const { name, bytes } of report.files) assert.equal(readFileSync(join(out, name)).length, bytes, name);

  const again = await cliJson(['inspect', out]);
  assert.equal(again.code, 0, 'the output opens');
});

test('the bytes do not depend on threads and memory', async (t) => {
  const folder = scratch(t);
  const hashes = [];
  for (const [name, ...flags] of [
    ['a', '-t', '0'],
    ['b', '-t', '2', '-m', '128M'],
  ]) {
    const out = join(folder, name);
    const { code, stderr } = await cli(['quantize', tinyLlama, '-o', out, '-p', 'int8', ...flags]);
    assert.equal(code, 0, stderr);
    hashes.push(Object.values(contents(out)));
  }
  assert.deepEqual(hashes[0], hashes[1]);
});

test('--json is one document, and --quiet changes nothing in it', async (t) => {
  const folder = scratch(t);
  const { code, stderr, document } = await cliJson([
    'quantize',
    tinyLlamaFile,
    '-o',
    join(folder, 'out'),
    '-p',
    'int8',
    '--quiet',
  ]);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  assert.equal(document.format, 'compressed-tensors');
  assert.equal(document.tensors.length, 39);
  assert.ok(document.totals.bytesAfter < document.totals.bytesBefore);
});

test('existing output is refused; --force replaces it', async (t) => {
  const out = join(scratch(t), 'out');
  const args = ['quantize', tinyLlama, '-o', out];
  assert.equal((await cli([...args, '-p', 'int8'])).code, 0);
  const first = contents(out);
  const refused = await cli([...args, '-p', 'int4_wo_32']);
  assert.equal(refused.code, 1);
  assert.equal(refused.stdout, '');
  assert.match(refused.stderr, /--force/);
  const json = await cliJson([...args, '-p', 'int4_wo_32']);
  assert.equal(json.code, 1);
  assert.equal(json.document.error.code, 'target-exists');
  assert.deepEqual(contents(out), first, 'refusal changes nothing');
  const forced = await cli([...args, '-p', 'int4_wo_32', '--force']);
  assert.equal(forced.code, 0, forced.stderr);
  assert.notDeepEqual(contents(out), first);
  const report = await cliJson(['plan', tinyLlama, '-p', 'int4_wo_32']);
  for (const { name, bytes } of report.document.files) assert.equal(readFileSync(join(out, name)).length, bytes, name);
});

test('the input is never its own output', async (t) => {
  const folder = join(scratch(t), 'model');
  cpSync(tinyLlama, folder, { recursive: true });
  const before = contents(folder);
  const { code, stderr } = await cli(['quantize', folder, '-o', folder, '-p', 'int8', '--force']);
  assert.equal(code, 1, stderr);
  assert.deepEqual(contents(folder), before);
});

test('a report path that cannot be written is refused before the run', async (t) => {
  const folder = scratch(t);
  const out = join(folder, 'out');
  const taken = join(folder, 'taken.json');
  writeFileSync(taken, 'mine');
  mkdirSync(join(folder, 'sub'));
  const shard = join(tinyLlama, 'model-00001-of-00003.safetensors');
  const model = join(folder, 'model');
  cpSync(tinyLlama, model, { recursive: true });
  const otherName = join(folder, 'other.json');
  linkSync(join(model, 'config.json'), otherName);
  const config = join(folder, 'config.json');
  writeFileSync(config, '{"global_quant_config":{"weight":{"dtype":"bfloat16"}}}');
  const cases = [
    [taken, [], 1, /--force/],
    [join(folder, 'none', 'r.json'), [], 1, /no folder/],
    [join(folder, `${'r'.repeat(245)}.json`), [], 1, /it cannot be written: ENAMETOOLONG/],
    [join(folder, 'sub'), ['--force'], 2, /folder/],
    [out, ['--force'], 2, /reads or writes/],
    [shard, ['--force'], 2, /reads or writes/],
    [join(model, 'config.json'), ['--force'], 2, /reads or writes/],
    [otherName, ['--force'], 2, /reads or writes/],
    [config, ['--force', '--config', config], 2, /reads or writes/],
  ];
  for (const [path, flags, expected, message] of cases) {
    const source = path === shard ? tinyLlama : model;
    const preset = flags.includes('--config') ? [] : ['-p', 'int8'];
    const { code, stderr } = await cli(['quantize', source, '-o', out, ...preset, '--report', path, ...flags]);
    assert.equal(code, expected, stderr);
    assert.match(stderr, message);
    assert.equal(existsSync(out), false, `nothing was written for ${path}`);
  }
  assert.equal(readFileSync(taken, 'utf8'), 'mine');
});

test('--calibration: awq of a model, and the error without it', async (t) => {
  const folder = scratch(t);
  const out = join(folder, 'out');
  const tokens = join(files, 'tiny-llama-reference/eval_tokens.safetensors');
  const config = join(folder, 'awq.json');
  const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
  writeFileSync(
    config,
    JSON.stringify({ global_quant_config: { weight }, exclude: ['lm_head'], algo_config: [{ name: 'awq' }] }),
  );
  const command = ['quantize', tinyLlama, '-o', out, '--config', config];
  const without = await cliJson(command);
  assert.equal(without.code, 1);
  assert.equal(without.document.error.code, 'argument-invalid');
  assert.match(without.document.error.message, /awq need/);
  assert.equal(existsSync(out), false);
  const missing = await cliJson([...command, '--calibration', join(folder, 'nothing.safetensors')]);
  assert.equal(missing.code, 1);
  assert.equal(missing.document.error.code, 'source-invalid');
  const { code, document, stderr } = await cliJson([...command, '--calibration', tokens]);
  assert.equal(code, 0, stderr);
  assert.equal(document.totals.quantized, 28);
  assert.ok(existsSync(join(out, 'config.json')));
});

test('compare: a model with its quantized self, worst first; with itself, exact', async (t) => {
  const folder = scratch(t);
  const out = join(folder, 'out');
  const { document: report } = await cliJson(['quantize', tinyLlama, '-o', out, '-p', 'int4_wo_32']);
  const { code, stderr, document } = await cliJson(['compare', tinyLlama, out]);
  assert.equal(code, 0, stderr);
  for (const tensor of report.tensors.filter(({ action }) => action === 'quantize')) {
    const other = document.tensors.find(({ name }) => name === tensor.name);
    assert.ok(
      Math.abs(other.error.sqnrDb - tensor.error.sqnrDb) < 0.05,
      `${tensor.name}: ${other.error.sqnrDb} and ${tensor.error.sqnrDb}`,
    );
  }
  const text = await cli(['compare', tinyLlama, out, '--report', join(folder, 'compare.json')]);
  assert.equal(text.code, 0, text.stderr);
  const rates = [...text.stdout.matchAll(/ (\d+\.\d\d) dB /g)].map((match) => Number(match[1]));
  assert.equal(rates.length, report.totals.quantized);
  assert.deepEqual(
    rates,
    [...rates].sort((a, b) => a - b),
    'worst first',
  );
  assert.match(text.stdout, /^39 tensors compared, \d+ exact, /m);
  assert.equal(JSON.parse(readFileSync(join(folder, 'compare.json'), 'utf8')).tensors.length, document.tensors.length);

  const same = await cli(['compare', tinyLlama, tinyLlama]);
  assert.equal(same.code, 0, same.stderr);
  assert.match(same.stdout, /no tensor differs/);
  assert.match(same.stdout, /^39 tensors compared, 39 exact, /m);
});

test('every format says how its files are loaded', async (t) => {
  const folder = scratch(t);
  const said = async (name, ...flags) => {
    const { code, stdout, stderr } = await cli(['quantize', tinyLlama, '-o', join(folder, name), ...flags]);
    assert.equal(code, 0, stderr);
    return stdout.slice(stdout.indexOf('to load it'));
  };
  const path = (name) => JSON.stringify(join(folder, name));
  const one = await said('one.gguf', '--preset', 'q8_0');
  assert.ok(one.includes(`llama-completion -m ${path('one.gguf')}`), one);
  assert.match(one, /wllama\.loadModel/);
  const parts = await said('parts', '--format', 'gguf', '--preset', 'q8_0', '--shard-size', '1MB');
  const [first] = readdirSync(join(folder, 'parts')).sort();
  assert.match(first, /-00001-of-/);
  assert.ok(parts.includes(`-m ${path(`parts/${first}`)}`), parts);
  for (const [format, preset, needs] of [
    ['awq', 'uint4_wo_32', 'gptqmodel'],
    ['gptq', 'int4_wo_32', 'gptqmodel'],
    ['quark', 'int8', 'amd-quark'],
    ['fake-quantized', 'int8', 'transformers'],
    ['compressed-tensors', 'int8', 'compressed-tensors'],
  ]) {
    const text = await said(format, '--preset', preset, '--format', format);
    assert.ok(text.includes(`LlamaForCausalLM.from_pretrained(${path(format)}`), text);
    assert.match(text, new RegExp(`pip install .*${needs}`));
  }
});

test('tensors that already have their type are reported as copies, and the sample as GGUF has no warning', async (t) => {
  const folder = scratch(t);
  const [first, again] = ['a.gguf', 'b.gguf'].map((name) => join(folder, name));
  const sample = join(files, 'tiny-llama');
  const made = await cli(['quantize', sample, '-o', first, '--preset', 'q8_0']);
  assert.match(made.stdout, /30 of 39 tensors quantized/);
  assert.doesNotMatch(made.stdout + made.stderr, /warning/);
  const { code, stdout } = await cli(['quantize', first, '-o', again, '--preset', 'q8_0']);
  assert.equal(code, 0);
  assert.match(stdout, /nothing to quantize, the result is a copy: 2\.75 MB, 30 of 39 tensors have their type already/);
  assert.doesNotMatch(stdout, /quantized, |warning/);
});
