// A run in parts: N processes that know nothing of each other, in any order, then merge-index; the folder has the bytes of
// one whole run. What is missing, of another plan or spoilt is told, and nothing is moved.
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { dealOut } from '../../../dist/run/shard_range.js';
import { cli, cliJson, scratch, tinyLlama, tinyLlamaFile } from '../cli/process.mjs';
import { modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';

/** Bytes of every file of a folder, by name. */
const contents = (folder) =>
  Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(join(folder, name)).toString('base64')]),
  );
const shardNames = [
  'model-00001-of-00003.safetensors',
  'model-00002-of-00003.safetensors',
  'model-00003-of-00003.safetensors',
];
const quantize = (out, ...flags) => cli(['quantize', tinyLlama, '-o', out, '-t', '1', ...flags]);
const part = (out, number, of, ...flags) => quantize(out, '-p', 'int4_wo_32', '--shards', `${number}/${of}`, ...flags);

/** A folder with both parts of two. */
async function twoParts(t) {
  const out = join(scratch(t), 'out');
  for (const number of [1, 2]) assert.equal((await part(out, number, 2)).code, 0);
  return out;
}

test('shards are assigned by bytes, the same way on every machine', () => {
  assert.deepEqual(dealOut([5, 5, 5, 1], 2), [0, 1, 0, 1]);
  assert.deepEqual(dealOut([1, 9, 2, 3], 2), [1, 0, 1, 1], 'the large one alone');
  assert.deepEqual(dealOut([4, 4], 5), [0, 1], 'more parts than shards');
  assert.deepEqual(dealOut([0, 0, 0], 2), [0, 0, 0]);
  const sizes = Array.from({ length: 200 }, (_, at) => 4e9 + ((at * 7919) % 1e9));
  const loads = [0, 0, 0, 0, 0, 0, 0];
  for (const [file, to] of dealOut(sizes, 7).entries()) loads[to] += sizes[file];
  assert.ok(Math.max(...loads) < 1.05 * Math.min(...loads), `${loads}`);
});

for (const of of [1, 2, 3, 5]) {
  test(`three shards in ${of} concurrent parts: the same bytes as one run`, async (t) => {
    const folder = scratch(t);
    const [whole, out] = [join(folder, 'whole'), join(folder, 'out')];
    const wholeReport = join(folder, 'whole.json');
    assert.equal((await quantize(whole, '-p', 'int4_wo_32', '--report', wholeReport)).code, 0);
    const runs = await Promise.all(Array.from({ length: of }, (_, at) => part(out, of - at, of)));
    for (const { code, stderr } of runs) assert.equal(code, 0, stderr);
    const before = readdirSync(out).sort();
    assert.deepEqual(before, [...shardNames, 'wasmquant-parts'], 'no config.json and no index: not a model yet');
    assert.equal(
      runs.filter(({ stdout }) => /no shard: there are more parts/.test(stdout)).length,
      Math.max(0, of - 3),
    );
    assert.match(
      runs[0].stdout,
      new RegExp(`part ${of} of ${of}: .*; when all parts are done:\n  wasmquant merge-index `),
    );

    const report = join(folder, 'report.json');
    const merged = await cli(['merge-index', out, '--report', report]);
    assert.equal(merged.code, 0, merged.stderr);
    assert.deepEqual(contents(out), contents(whole));
    const [left, right] = [report, wholeReport].map((path) => JSON.parse(readFileSync(path, 'utf8')));
    for (const key of ['format', 'tensors', 'files', 'totals', 'diagnostics'])
      assert.deepEqual(left[key], right[key], key);
  });
}

for (const [format, ...config] of [
  ['quark', '-p', 'mxfp4'],
  ['awq', '-p', 'uint4_wo_32'],
  ['gptq', '-p', 'int4_wo_32'],
  ['fake-quantized', '-p', 'int8'],
]) {
  test(`${format} in two parts`, async (t) => {
    const folder = scratch(t);
    const [whole, out] = [join(folder, 'whole'), join(folder, 'out')];
    const flags = [...config, '-f', format, '-x', 'lm_head'];
    const runs = [
      quantize(whole, ...flags),
      ...[1, 2].map((number) => quantize(out, ...flags, '--shards', `${number}/2`)),
    ];
    for (const { code, stderr } of await Promise.all(runs)) assert.equal(code, 0, stderr);
    assert.equal((await cli(['merge-index', out])).code, 0);
    assert.deepEqual(contents(out), contents(whole));
  });
}

/** Bytes of each tensor of a model, by name. */
async function tensorsOf(t, quantizer, path) {
  const model = await modelFor(t, quantizer, path);
  const folder = path.endsWith('.gguf') ? dirname(path) : path;
  const read = ({ file, begin, end }) => readFileSync(join(folder, file)).subarray(begin, end).toString('base64');
  return Object.fromEntries(
    model.tensors.map((tensor) => [tensor.name, read(tensor)]).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

test('GGUF in parts: a file for each, or files of a size, with the tensors of one run', async (t) => {
  const folder = scratch(t);
  const whole = join(folder, 'whole.gguf');
  const wholeReport = join(folder, 'whole.json');
  assert.equal((await quantize(whole, '-p', 'q4_k_m', '--report', wholeReport)).code, 0);
  const quantizer = await quantizerFor(t);
  const expected = await tensorsOf(t, quantizer, whole);
  for (const [of, flags, files] of [
    [3, [], 3],
    [2, ['--shard-size', '400KB'], 5],
  ]) {
    const out = join(folder, `in-${of}`);
    const runs = await Promise.all(
      Array.from({ length: of }, (_, at) =>
        quantize(out, '-p', 'q4_k_m', '--shards', `${at + 1}/${of}`, '-f', 'gguf', ...flags),
      ),
    );
    for (const { code, stderr } of runs) assert.equal(code, 0, stderr);
    const report = join(folder, `${of}.json`);
    const merged = await cli(['merge-index', out, '--report', report]);
    assert.equal(merged.code, 0, merged.stderr);
    assert.deepEqual(
      readdirSync(out).sort(),
      Array.from({ length: files }, (_, at) => `bf16-Q4_K_M-0000${at + 1}-of-0000${files}.gguf`),
    );
    assert.deepEqual(await tensorsOf(t, quantizer, out), expected);
    const [left, right] = [report, wholeReport].map((path) => JSON.parse(readFileSync(path, 'utf8')));
    for (const key of ['format', 'tensors', 'diagnostics']) assert.deepEqual(left[key], right[key], key);
    assert.equal(left.totals.bytesBefore, right.totals.bytesBefore);
  }
});

test('through the library: reports of parts, workers and memory that differ', async (t) => {
  const folder = scratchFolder(t);
  const quantizers = [await quantizerFor(t), await quantizerFor(t, { threads: 2, memoryBudgetBytes: 128 * 2 ** 20 })];
  const out = join(folder, 'out');
  const reports = [];
  for (const [at, quantizer] of quantizers.entries()) {
    const model = await modelFor(t, quantizer, tinyLlama);
    const progress = [];
    const options = { target: out, shards: { part: at + 1, of: 2 }, onProgress: (each) => progress.push(each) };
    reports.push(await quantizer.quantizeModel(model, 'int8', options));
    assert.equal(progress.at(-1).bytesDone, progress.at(-1).bytesTotal);
    assert.ok(progress.at(-1).bytesTotal < 5e6, 'of the part alone');
  }
  assert.deepEqual(
    reports.map(({ shards }) => shards),
    [
      { part: 1, of: 2 },
      { part: 2, of: 2 },
    ],
  );
  assert.equal(reports[0].tensors.length + reports[1].tensors.length, 39);
  assert.deepEqual(reports.flatMap(({ files }) => files.map(({ name }) => name)).sort(), shardNames);
  const [quantizer] = quantizers;
  const stopped = { signal: AbortSignal.abort() };
  await assert.rejects(quantizer.mergeShards(out, stopped), { name: 'AbortError' });
  const steps = [];
  const merged = await quantizer.mergeShards(out, { onProgress: (step) => steps.push(step) });
  const { bytesDone, bytesTotal, ...last } = steps.at(-1);
  assert.deepEqual(last, { phase: 'read', index: 39, count: 39 });
  assert.equal(bytesDone, bytesTotal);
  assert.ok(bytesTotal > 1e6, `${bytesTotal}`);
  const model = await modelFor(t, quantizer, tinyLlama);
  const whole = await quantizer.quantizeModel(model, 'int8', { target: join(folder, 'whole') });
  assert.deepEqual(merged.tensors, whole.tensors);
  assert.deepEqual(merged.totals, whole.totals);
  assert.equal(reports[0].totals.bytesBefore + reports[1].totals.bytesBefore, whole.totals.bytesBefore);
  assert.deepEqual(contents(out), contents(join(folder, 'whole')));
});

test('missing parts, duplicate parts and parts of another plan are refused', async (t) => {
  const out = join(scratch(t), 'out');
  assert.equal((await part(out, 3, 4)).code, 0);
  const failsWith = async (code, message) => {
    const before = readdirSync(out, { recursive: true }).sort();
    const { document } = await cliJson(['merge-index', out]);
    assert.equal(document.error?.code, code, document.error?.message);
    assert.match(document.error.message, message);
    assert.deepEqual(readdirSync(out, { recursive: true }).sort(), before, 'nothing moved');
  };
  await failsWith('source-invalid', /parts 1, 2, 4 of 4 are missing/);
  const again = await cliJson(['quantize', tinyLlama, '-o', out, '-p', 'int4_wo_32', '--shards', '3/4']);
  assert.equal(again.document.error.code, 'target-exists');
  assert.equal((await part(out, 3, 4, '--force')).code, 0);
  assert.equal((await part(out, 1, 2)).code, 0);
  await failsWith('source-invalid', /runs in 2 and in 4 parts/);
  rmSync(join(out, 'wasmquant-parts/3-of-4.json'));
  assert.equal((await quantize(out, '-p', 'int8', '--shards', '2/2', '--force')).code, 0);
  await failsWith('file-invalid', /part 2 followed a different plan than part 1/);
  assert.equal((await part(out, 2, 2, '--force')).code, 0);
  assert.equal((await cli(['merge-index', out])).code, 0);
  await failsWith('source-invalid', /merged already/);
  const late = await cliJson(['quantize', tinyLlama, '-o', out, '-p', 'int4_wo_32', '--shards', '1/2', '--force']);
  assert.equal(late.document.error.code, 'target-exists', 'a whole model is not taken apart');
});

test('parts of two models, or of two calibrations, are refused', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 1 });
  const other = join(folder, 'other');
  cpSync(tinyLlama, other, { recursive: true });
  const shard = join(other, shardNames[2]);
  const bytes = readFileSync(shard);
  bytes[bytes.length - 1] ^= 1; // one value of one tensor
  writeFileSync(shard, bytes);
  const [model, changed] = [await modelFor(t, quantizer, tinyLlama), await modelFor(t, quantizer, other)];
  const weight = { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: 32, symmetric: true };
  const observer = { observer_cls: 'PerGroupMSEObserver', observer_options: { weighted: true } };
  const weighted = { global_quant_config: { weight: { ...weight, ...observer } }, exclude: ['lm_head'] };
  const calibration = (step) => {
    const data = Array.from({ length: 64 }, (_, i) => (i * step) % 250);
    return { calibration: { tokens: { data, shape: [2, 32] } } };
  };
  const same = [weighted, model, calibration(3)];
  for (const [number, [first, second, message]] of [
    [['int8', model, {}], ['int8', changed, {}], /part 2 was made from other weights than part 1/],
    [same, [weighted, model, calibration(77)], /part 2 followed a different plan than part 1: config, options, calibr/],
    [same, same, null],
  ].entries()) {
    const target = join(folder, `out-${number}`);
    for (const [at, [config, of, options]] of [first, second].entries())
      await quantizer.quantizeModel(of, config, { target, shards: { part: at + 1, of: 2 }, ...options });
    if (message) await assert.rejects(quantizer.mergeShards(target), { code: 'file-invalid', message });
    else await quantizer.mergeShards(target);
  }
});

test('files of subfolders are where one run puts them', async (t) => {
  const folder = scratchFolder(t);
  const [source, out] = [join(folder, 'source'), join(folder, 'out')];
  cpSync(tinyLlama, source, { recursive: true });
  mkdirSync(join(source, 'additional_chat_templates'));
  writeFileSync(join(source, 'additional_chat_templates/tools.jinja'), '{{ tools }}');
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, source);
  for (const number of [1, 2]) {
    await quantizer.quantizeModel(model, 'int8', { target: out, shards: { part: number, of: 2 } });
    assert.ok(!existsSync(join(out, 'additional_chat_templates')), 'before all parts are done');
  }
  const merged = await quantizer.mergeShards(out);
  const whole = await quantizer.quantizeModel(model, 'int8', { target: join(folder, 'whole') });
  assert.deepEqual(merged.files, whole.files);
  assert.equal(readFileSync(join(out, 'additional_chat_templates/tools.jinja'), 'utf8'), '{{ tools }}');
  assert.deepEqual(
    readdirSync(out, { recursive: true }).sort(),
    readdirSync(join(folder, 'whole'), { recursive: true }).sort(),
  );
});

test('missing, truncated, changed and extra shards are refused', async (t) => {
  const out = await twoParts(t);
  const quantizer = await quantizerFor(t);
  const shard = join(out, shardNames[1]);
  const bytes = readFileSync(shard);
  const spoilt = Buffer.from(bytes);
  spoilt[20] ^= 1;
  const spoilers = [
    ['source-invalid', /is missing/, () => renameSync(shard, `${shard}.away`)],
    ['file-truncated', /run part \d again with --force/, () => truncateSync(shard, bytes.length - 1)],
    ['file-invalid', /another header/, () => writeFileSync(shard, spoilt)],
    ['target-exists', /not of this run/, () => writeFileSync(join(out, 'model-00004-of-00004.safetensors'), bytes)],
    ['target-exists', /exists already/, () => writeFileSync(join(out, 'config.json'), '{}')],
    ['file-invalid', /cannot be read/, () => writeFileSync(join(out, 'wasmquant-parts/2-of-2.json'), '{"version"')],
  ];
  for (const [code, message, spoil] of spoilers) {
    const copy = `${out}-copy`;
    cpSync(out, copy, { recursive: true });
    spoil();
    await assert.rejects(quantizer.mergeShards(out), { code, message });
    assert.ok(!existsSync(join(out, 'tokenizer.json')) && !existsSync(join(out, 'model.safetensors.index.json')));
    rmSync(out, { recursive: true });
    renameSync(copy, out);
  }
  const record = join(out, 'wasmquant-parts/1-of-2.json');
  writeFileSync(record, readFileSync(record, 'utf8').replace('"config.json"', '"../config.json"'));
  await assert.rejects(quantizer.mergeShards(out), { code: 'file-invalid', message: /outside its folder/ });
});

test('an interrupted merge continues, and leftovers of killed attempts are removed', async (t) => {
  const out = await twoParts(t);
  const whole = join(out, '../whole');
  assert.equal((await quantize(whole, '-p', 'int4_wo_32')).code, 0);
  renameSync(join(out, 'wasmquant-parts/model.safetensors.index.json'), join(out, 'model.safetensors.index.json'));
  const left = join(out, 'out.wasmquant-0123abcd-77-0123abcd0123abcd.partial');
  mkdirSync(left);
  writeFileSync(join(left, shardNames[0]), 'half');
  await (await quantizerFor(t)).mergeShards(out);
  assert.deepEqual(contents(out), contents(whole));
});

test('calls that cannot be done in parts are refused', async (t) => {
  const folder = scratch(t);
  const fails = async (args, code, message) => {
    const { document } = await cliJson(['quantize', ...args, '--shards', '1/2']);
    assert.equal(document.error?.code, code, document.error?.message);
    assert.match(document.error.message, message);
    assert.ok(!existsSync(join(folder, 'out')) || readdirSync(join(folder, 'out')).length === 0);
  };
  const out = join(folder, 'out');
  const onnx = join(import.meta.dirname, '../../files/onnx_quantized/n_bits_2_symmetric.onnx');
  await fails([onnx, '-o', out, '-p', 'int8'], 'format-unsupported', /onnx output is one file/);
  const best = ['-p', 'q4_0', '--best', '--calibration-text', join(tinyLlama, '../README.md')];
  await fails([join(tinyLlama, '..'), '-o', out, ...best], 'argument-invalid', /whole model, block by block/);
  const config = join(folder, 'cle.json');
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  writeFileSync(config, JSON.stringify({ global_quant_config: { weight }, pre_quant_opt_config: [{ name: 'cle' }] }));
  await fails([tinyLlama, '-o', out, '-c', config], 'argument-invalid', /whole model, block by block/);
  await fails([tinyLlamaFile, '-o', `${out}.safetensors`, '-p', 'int8'], 'target-invalid', /folder/);
  for (const text of ['0/2', '3/2', '1', 'a/b', '1/2/3']) {
    const { code, stderr } = await cli(['quantize', tinyLlama, '-o', out, '-p', 'int8', '--shards', text]);
    assert.equal(code, 2);
    assert.match(stderr, /parts count from 1/);
  }
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const run = (shards, target) => quantizer.quantizeModel(model, 'int8', { shards, target });
  await assert.rejects(run({ part: 0, of: 2 }, out), { code: 'argument-invalid' });
  await assert.rejects(run({ part: 1, of: 2 }, new WritableStream()), { code: 'target-invalid' });
});
