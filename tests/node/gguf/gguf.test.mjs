// GGUF: from a folder, from GGUF, to memory and to files; types by recipe and by layer; what is refused.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

async function written(t, quantizer, source, config) {
  const out = memoryStream();
  const report = await quantizer.quantizeModel(await modelFor(t, quantizer, source), config, { target: out.stream });
  return { bytes: out.bytes(), report };
}

test('a folder becomes a file that opens: names, types, metadata', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const { bytes, report } = await written(t, quantizer, tinyLlama, 'q4_k_m');
  assert.equal(report.format, 'gguf');
  const model = await modelFor(t, quantizer, bytes);
  assert.equal(model.format, 'gguf');
  assert.equal(model.metadata['general.architecture'], 'llama');
  assert.equal(model.metadata['general.file_type'], '15');
  assert.equal(model.metadata['llama.block_count'], '4');
  assert.match(model.metadata['tokenizer.ggml.tokens'], /^\[288 text\]$/);
  const dtypes = Object.fromEntries(model.tensors.map(({ name, dtype }) => [name, dtype]));
  assert.equal(dtypes['blk.0.attn_q.weight'], 'q4_k');
  assert.equal(dtypes['output.weight'], 'q6_k');
  assert.equal(dtypes['blk.0.ffn_down.weight'], 'q5_0', 'rows of 576 do not hold blocks of 256');
  assert.equal(dtypes['blk.0.attn_norm.weight'], 'F32');
  const quantized = report.tensors.filter(({ action }) => action === 'quantize');
  assert.equal(quantized.length, 30);
  assert.ok(quantized.every(({ error }) => error.sqnrDb > 15));
  const down = report.tensors.find(({ name }) => name === 'model.layers.0.mlp.down_proj.weight');
  assert.match(down.reason.text, /rows of 576 are not a multiple of q4_k blocks of 256, so q5_0/);
});

test('threads and budgets do not change a byte; F32 and back is the same', async (t) => {
  const bytes = [];
  for (const options of [{ threads: 0 }, { threads: 1 }, { threads: 3, memoryBudgetBytes: 128 * 1024 * 1024 }]) {
    const quantizer = await quantizerFor(t, options);
    bytes.push((await written(t, quantizer, tinyLlama, 'q6_k')).bytes);
  }
  assert.deepEqual(bytes[1], bytes[0]);
  assert.deepEqual(bytes[2], bytes[0]);
  const quantizer = await quantizerFor(t);
  const { bytes: plain } = await written(t, quantizer, tinyLlama, 'f32');
  const { bytes: again } = await written(t, quantizer, plain, 'q6_k');
  const names = (file) => modelFor(t, quantizer, file).then(({ tensors }) => tensors);
  const [direct, through] = [await names(bytes[0]), await names(again)];
  assert.equal(direct.length, through.length);
  for (const [i, { name, dtype, begin, end }] of direct.entries()) {
    assert.equal(through[i].name, name);
    assert.equal(through[i].dtype, dtype);
    assert.deepEqual(again.subarray(through[i].begin, through[i].end), bytes[0].subarray(begin, end), name);
  }
});

test('types by layer, by either name; excluded layers stay; patterns that match nothing are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const plan = await quantizer.plan(model, {
    dialect: 'gguf',
    recipe: 'q4_0',
    layers: { 'model.layers.0.mlp.*': 'q8_0', 'blk.1.attn_v': 'f16', '*.nothing': 'q8_0' },
    exclude: ['lm_head'],
  });
  const typeOf = (name) => {
    const { action, spec } = plan.tensors.find((tensor) => tensor.name === name);
    return action === 'copy' ? 'copy' : spec.dtype;
  };
  assert.equal(typeOf('model.layers.0.mlp.up_proj.weight'), 'q8_0');
  assert.equal(typeOf('model.layers.1.self_attn.v_proj.weight'), 'f16');
  assert.equal(typeOf('model.layers.2.self_attn.v_proj.weight'), 'q4_0');
  assert.equal(typeOf('lm_head.weight'), 'copy');
  assert.deepEqual(
    plan.diagnostics.filter(({ code }) => code === 'pattern-unused').map(({ where }) => where),
    ['/layers/*.nothing'],
  );
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`no_such_layer_${i}`, 'q8_0']));
  const { diagnostics } = await quantizer.plan(model, { dialect: 'gguf', recipe: 'q2_k_s', layers: many });
  assert.equal(diagnostics.filter(({ code }) => code === 'pattern-unused').length, 100);
  assert.ok(diagnostics.some(({ code }) => code === 'needs-importance'));
});

test('requantizing gives a warning and copies every key', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes } = await written(t, quantizer, tinyLlama, 'q8_0');
  const { bytes: smaller, report } = await written(t, quantizer, bytes, 'q4_0');
  assert.ok(report.diagnostics.some(({ code }) => code === 'requantized'));
  const [before, after] = [await modelFor(t, quantizer, bytes), await modelFor(t, quantizer, smaller)];
  const { 'general.file_type': _, ...rest } = before.metadata;
  const { 'general.file_type': type, ...others } = after.metadata;
  assert.equal(type, '2');
  assert.deepEqual(others, rest);
});

test('models and configs that GGUF cannot hold are refused before any work', async (t) => {
  const quantizer = await quantizerFor(t);
  const bare = safetensors({ 'a.weight': { dtype: 'F32', shape: [32, 32], data: noise(1024, 3) } });
  const refused = async (source, config, options, expected) => {
    const model = await modelFor(t, quantizer, source);
    await assert.rejects(() => quantizer.plan(model, config, options), expected);
  };
  await refused(bare, 'q8_0', {}, { code: 'format-unsupported', where: 'config.json' });
  await refused(tinyLlama, 'int8', { format: 'gguf' }, { code: 'format-unsupported', message: /q4_k_m/ });
  const { bytes } = await written(t, quantizer, tinyLlama, 'f16');
  await refused(bytes, 'int8', { format: 'quark' }, { code: 'format-unsupported', message: /GGUF/ });
  for (const [config, where] of [
    [{ dialect: 'gguf' }, ''],
    [{ dialect: 'gguf', recipe: 'q9' }, '/recipe'],
    [{ dialect: 'gguf', recipe: 'q8_0', layers: { a: 'q8_k' } }, '/layers/a'],
    [{ dialect: 'gguf', recipe: 'q8_0', layer: {} }, '/layer'],
  ]) {
    const errors = quantizer.checkConfig(config).filter(({ severity }) => severity === 'error');
    assert.equal(errors[0]?.where, where, JSON.stringify(config));
  }
});

test('a broken GGUF file is refused with its place', async (t) => {
  const quantizer = await quantizerFor(t);
  const { bytes } = await written(t, quantizer, tinyLlama, 'q8_0');
  await assert.rejects(quantizer.open(bytes.subarray(0, 100_000)), { name: 'QuantizationError' });
  const version = bytes.slice();
  version[4] = 9;
  await assert.rejects(quantizer.open(version), { code: /format-unknown|file-invalid/ });
  const nan = (await written(t, quantizer, tinyLlama, 'f32')).bytes;
  const model = await modelFor(t, quantizer, nan);
  const { begin } = model.tensors.find(({ name }) => name === 'blk.2.ffn_up.weight');
  new DataView(nan.buffer, nan.byteOffset).setUint32(begin + 4 * 300, 0x7fc00000, true);
  await assert.rejects(written(t, quantizer, nan, 'q4_0'), {
    code: 'value-not-finite',
    where: 'blk.2.ffn_up.weight',
    message: /row 1, column 44/,
  });
});

test('command line: a file by its ending, a folder with a named file, --layer and --exclude', async (t) => {
  const folder = scratchFolder(t);
  const file = join(folder, 'm.gguf');
  const { code, stderr, document } = await cliJson(['quantize', tinyLlama, '-o', file, '-p', 'mxfp4']);
  assert.equal(code, 0, stderr);
  assert.equal(document.format, 'gguf');
  assert.ok(document.tensors.some(({ spec }) => spec?.dtype === 'mxfp4'));
  const out = join(folder, 'out');
  const second = await cli(['quantize', file, '-o', out, '-p', 'q8_0', '--exclude', 'output', '-l', '*ffn_down*=q5_0']);
  assert.equal(second.code, 0, second.stderr);
  assert.deepEqual(readdirSync(out), ['m-Q8_0.gguf']);
  const { document: inspected } = await cliJson(['inspect', join(out, 'm-Q8_0.gguf')]);
  const dtypeOf = (name) => inspected.tensors.find((tensor) => tensor.name === name).dtype;
  assert.equal(dtypeOf('blk.0.ffn_down.weight'), 'q5_0');
  assert.equal(dtypeOf('blk.0.ffn_up.weight'), 'q8_0');
  writeFileSync(join(folder, 'x.gguf'), readFileSync(file).subarray(0, 1000));
  const broken = await cli(['inspect', join(folder, 'x.gguf')]);
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /x\.gguf/);
  assert.equal(existsSync(join(folder, 'y.gguf')), false);
});

test('parts of a given size hold the same tensors and open as one model; a single file has no part number', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const folder = scratchFolder(t);
  const whole = await written(t, quantizer, tinyLlama, 'q4_k_m');
  const source = await modelFor(t, quantizer, tinyLlama);
  const gguf = { shardBytes: 400_000 };
  const report = await quantizer.quantizeModel(source, 'q4_k_m', { target: join(folder, 'out'), gguf });
  const names = readdirSync(join(folder, 'out'));
  assert.deepEqual(
    names.sort(),
    [1, 2, 3, 4, 5].map((part) => `tiny-llama-Q4_K_M-0000${part}-of-00005.gguf`),
  );
  assert.deepEqual(report.files.map(({ name }) => name).sort(), names);
  for (const { name, bytes } of report.files) {
    assert.equal(readFileSync(join(folder, 'out', name)).length, bytes);
    assert.ok(bytes < 400_000 + 20_000, `${name} has ${bytes} bytes`);
  }
  const [parts, one] = [await modelFor(t, quantizer, join(folder, 'out')), await modelFor(t, quantizer, whole.bytes)];
  assert.equal(parts.metadata['split.count'], '5');
  assert.equal(parts.metadata['split.tensors.count'], '39');
  const contents = ({ tensors }, read) =>
    new Map(tensors.map(({ name, file, begin, end }) => [name, read(file).subarray(begin, end)]));
  const byName = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  assert.deepEqual(
    byName(contents(parts, (file) => new Uint8Array(readFileSync(join(folder, 'out', file))))),
    byName(contents(one, () => whole.bytes)),
  );

  const again = memoryStream();
  await quantizer.quantizeModel(parts, 'q4_0', { target: again.stream });
  const { metadata } = await modelFor(t, quantizer, again.bytes());
  assert.equal(metadata['split.count'], undefined);
  await assert.rejects(quantizer.quantizeModel(source, 'q4_k_m', { target: memoryStream().stream, gguf }), {
    code: 'target-invalid',
    message: /has 5; give a folder/,
  });
  assert.equal((await quantizer.plan(source, 'q4_k_m', { gguf: { shardBytes: 1e9 } })).files.length, 1);
  await assert.rejects(() => quantizer.plan(source, 'int8', { gguf }), {
    code: 'format-unsupported',
    where: 'shardBytes',
  });
  const out = join(folder, 'by-command');
  const { code, stderr } = await cli(['quantize', tinyLlama, '-o', out, '-p', 'q4_0', '--shard-size', '1MB']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(out).sort()[0], 'tiny-llama-Q4_0-00001-of-00002.gguf');
});

test("a result's name has its own type, not the type of its source file", async (t) => {
  const quantizer = await quantizerFor(t);
  const bytes = readFileSync(join(tinyLlama, 'model.safetensors'));
  const config = new File([readFileSync(join(tinyLlama, 'config.json'))], 'config.json');
  for (const [name, result] of [
    ['tiny-F16', 'tiny-Q8_0.gguf'],
    ['tiny.q4_k_m', 'tiny-Q8_0.gguf'],
    ['tiny-v1.5', 'tiny-v1.5-Q8_0.gguf'],
    ['F16', 'F16-Q8_0.gguf'],
  ]) {
    const model = await modelFor(t, quantizer, [new File([bytes], `${name}.safetensors`), config]);
    assert.deepEqual(
      (await quantizer.plan(model, 'q8_0')).files.map((file) => file.name),
      [result],
    );
  }
});
