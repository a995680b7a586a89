// quantization_config blocks and recipes of the wild (tests/files/wild): configs resolve layer by layer and survive being
// written, stored checkpoints decode, and what is not read is refused with a sentence that says what it is.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { files, modelFor, scratchFolder } from '../scratch.mjs';
import { safetensors } from '../written_model.mjs';
import { plainLayer, storedLayer } from './stored_layers.mjs';

const quantizer = await createQuantizer({ threads: 0 });
after(() => quantizer[Symbol.asyncDispose]());

const folder = join(files, 'wild');
const kinds = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => name.slice(0, -5));
const entries = kinds.flatMap((kind) =>
  JSON.parse(readFileSync(join(folder, `${kind}.json`), 'utf8')).map((entry) => ({ kind, ...entry })),
);
const isKept = (text) => text.startsWith('kept');

/** The block where its file has it: {file name: content}. */
function siblingFiles({ place, block }) {
  const [file, pointer = ''] = place.split(' ');
  let content = block;
  for (const key of pointer.split('/').slice(1).reverse()) content = { [key]: content };
  if (file === 'config.json') return { [file]: { model_type: 'x', ...content } };
  return { 'config.json': { model_type: 'x' }, [file]: content };
}

/** A folder with `parts` as its weights. */
function modelFolder(t, parts, siblings) {
  const path = join(scratchFolder(t), 'model');
  mkdirSync(path);
  writeFileSync(join(path, 'model.safetensors'), safetensors(parts));
  for (const [name, content] of Object.entries(siblings)) writeFileSync(join(path, name), JSON.stringify(content));
  return path;
}

/** "int4 group 128 asymmetric", or "kept RULE" with the pointer of the rule. */
function planned({ spec, reason }) {
  const where = reason.where && ` ${reason.where}`;
  if (spec === null) return `kept ${reason.rule}${where}`;
  const scheme = spec.qscheme.replace('per_', '');
  const size = { group: ` ${spec.group_size}`, block: ` ${(spec.block_size ?? []).join(' ')}` }[scheme] ?? '';
  return `${spec.dtype} ${scheme}${size}${spec.symmetric === false ? ' asymmetric' : ''}${where}`;
}
const schemeOf = (text) => (isKept(text) ? 'kept' : text.replace(/ \/.*$/, ''));
/** What a refusal calls the kinds whose blocks do not name themselves. */
const names = {
  modelopt: 'ModelOpt',
  mlx: 'MLX',
  fp8: 'ModelOpt',
  recipes: 'llm-compressor|ModelOpt|Brevitas',
  quark: 're:',
};

/** What a user gives as the config: the whole config.json, or a block of its own file. */
function configOf({ kind, place, block }) {
  if (kind === 'quark-algorithms') return { global_quant_config: { weight: int4 }, algo_config: [block] };
  return /^config\.json .*quantization_config$/.test(place) ? siblingFiles({ place, block })['config.json'] : block;
}
const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1 };
const writable = ['compressed-tensors', 'quark', 'awq', 'gptq'];
const fakeQuantized = { format: 'fake-quantized' };
const bfloat16Everywhere = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: [] };

/** {tensors, values} of layers, each stored as its text says ("kept", "int4 group 128", "modelopt:fp4 group 16"). */
function storedModel(kind, layers) {
  const made = Object.entries(layers).map(([layer, text], i) => {
    if (isKept(text)) return plainLayer(layer, i);
    const [, format = kind, scheme] = /^(?:([\w-]+):)?(.*)$/.exec(text);
    return storedLayer(format, scheme, layer, i);
  });
  return {
    tensors: Object.assign({}, ...made.map(({ tensors }) => tensors)),
    values: Object.assign({}, ...made.map(({ values }) => values)),
  };
}

const withoutCache = (config) =>
  JSON.parse(JSON.stringify(config, (key, value) => (key === 'kv_cache_scheme' ? null : value)));

for (const entry of entries.filter(({ layers }) => layers)) {
  const { kind, name, layers, stored, written } = entry;
  test(`${kind}, ${name}: every layer gets its spec, also from the config written back`, async (t) => {
    const kept = Object.keys(layers).map((layer, i) => plainLayer(layer, i).tensors);
    const model = await modelFor(t, quantizer, safetensors(Object.assign({}, ...kept)));
    const resolved = async (config) =>
      Object.fromEntries(
        (await quantizer.plan(model, config, fakeQuantized)).tensors.map((tensor) => [tensor.layer, planned(tensor)]),
      );
    const config = configOf(entry);
    assert.deepEqual(await resolved(config), layers);
    // As it is written: with every default, and in Quark's words.
    const parsed = quantizer.parseConfig(config);
    const again = quantizer.parseConfig(JSON.stringify(parsed.config));
    assert.deepEqual(again.config, parsed.config);
    const schemes = (found) =>
      Object.fromEntries(Object.entries(found).map(([layer, text]) => [layer, schemeOf(text)]));
    assert.deepEqual(schemes(await resolved(parsed.config)), schemes(layers));
    assert.deepEqual(schemes(await resolved(quantizer.convertConfig(config, 'quark').config)), schemes(layers));
    // And as the block of a checkpoint that is written by it; its cache needs scales, which the model has not.
    if (writable.includes(kind) && stored !== null && written !== null) {
      const { quantizationConfig } = await quantizer.plan(model, withoutCache(config), { format: kind });
      assert.deepEqual(schemes(await resolved(quantizationConfig)), schemes(layers));
    }
    if (kind === 'quark-algorithms') assert.equal(parsed.config.algo_config[0].name, entry.block.name);
  });
}

for (const entry of entries) {
  const {
    kind,
    name,
    layers,
    stored = layers && Object.fromEntries(Object.entries(layers).map(([layer, text]) => [layer, schemeOf(text)])),
  } = entry;
  if (!stored || kind === 'quark-algorithms') continue;
  test(`${kind}, ${name}: a checkpoint with this block decodes`, async (t) => {
    const { tensors, values } = storedModel(kind, stored);
    const model = await modelFor(t, quantizer, modelFolder(t, tensors, siblingFiles(entry)));
    const reference = await modelFor(t, quantizer, safetensors(values));
    const report = await quantizer.compare(reference, model);
    assert.deepEqual(report.tensors.map((tensor) => tensor.name).sort(), Object.keys(values).sort());
    for (const { name: tensor, error } of report.tensors) assert.equal(error.maxAbs, 0, tensor);
    const count = Object.values(stored).filter((text) => !isKept(text)).length;
    const { diagnostics } = await quantizer.plan(model, bfloat16Everywhere, fakeQuantized);
    assert.deepEqual(
      diagnostics.filter(({ code }) => code === 'key-unknown'),
      [],
      'each key of the block is known',
    );
    const requantized = diagnostics.find(({ code }) => code === 'requantized');
    assert.match(requantized.message, new RegExp(`first of ${count} tensors`));
  });
}

for (const entry of entries.filter(({ error }) => error)) {
  const { kind, name, block, error } = entry;
  if (error.config)
    test(`${kind}, ${name}: as a config it is refused, in one sentence`, () => {
      const problems = quantizer.checkConfig(configOf(entry)).filter(({ severity }) => severity === 'error');
      assert.deepEqual(
        problems.map(({ code, where }) => [code, where]),
        [error.config],
      );
      const says = `${problems[0].message} ${problems[0].hint ?? ''}`;
      assert.match(says, new RegExp(names[kind] ?? block.quant_method ?? block.name));
      assert.ok(error.config[0] !== 'config-foreign' || problems[0].hint, 'what to do');
    });
  if (error.open)
    test(`${kind}, ${name}: as a checkpoint it is refused, not taken as one that is not quantized`, async (t) => {
      const { tensors } = storedModel(kind, { 'model.layers.0.self_attn.q_proj': error.stored, lm_head: 'kept' });
      const model = await modelFor(t, quantizer, modelFolder(t, tensors, siblingFiles(entry)));
      const [code, where] = error.open;
      await assert.rejects(() => quantizer.plan(model, 'int8'), { code, where });
      const comparison = quantizer.compare(model, model);
      if (where.startsWith('/')) return assert.rejects(comparison, { code, where });
      const missed = (await comparison).diagnostics.filter((problem) => problem.code === 'tensor-not-compared');
      assert.ok(missed.some(({ message }) => message.startsWith(`${where}: `)));
    });
}

test('every entry says where it was found, and has an outcome', () => {
  assert.ok(entries.length >= 60);
  assert.equal(new Set(entries.map(({ kind, name }) => `${kind} ${name}`)).size, entries.length);
  for (const { kind, name, checkpoint, source, note, layers, stored, error } of entries) {
    assert.ok(checkpoint || source.repository || source.page || note, `${kind}, ${name}`);
    assert.ok(layers || stored || error, `${kind}, ${name}`);
  }
});
