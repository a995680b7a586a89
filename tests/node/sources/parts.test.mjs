// Models in several files: any part stands for the whole model where the others can be read, in any order, and is refused where they
// cannot. The same of ONNX's external data and of folders for transformers.js.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson } from '../cli/process.mjs';
import { twoLayers } from '../onnx/model.mjs';
import { digest } from '../runs/run_sources.mjs';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const sharded = join(tinyLlama, 'bf16');
const fileOf = (path) => new File([readFileSync(path)], path.split('/').at(-1));
const rotated = (list, by) => [...list.slice(by), ...list.slice(0, by)];
/** Every order of a list. */
const orders = (list) =>
  list.length < 2
    ? [list]
    : list.flatMap((first, at) => orders(list.filter((_, i) => i !== at)).map((rest) => [first, ...rest]));

/** A GGUF model in parts, and what becomes of it when its folder is given. */
async function ggufParts(t, quantizer) {
  const folder = join(scratchFolder(t), 'parts');
  const source = await modelFor(t, quantizer, tinyLlama);
  await quantizer.quantizeModel(source, 'f16', { target: folder, gguf: { shardBytes: 2_500_000 } });
  const paths = readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));
  assert.equal(paths.length, 3);
  return { folder, paths, wanted: await becomes(t, quantizer, folder) };
}

/** Digest of the q4_0 file made of a GGUF source. */
async function becomes(t, quantizer, source) {
  const out = memoryStream();
  const model = await modelFor(t, quantizer, source);
  assert.equal(model.tensors.length, 39);
  await quantizer.quantizeModel(model, 'q4_0', { target: out.stream });
  const { metadata } = await modelFor(t, quantizer, out.bytes());
  assert.deepEqual(
    Object.keys(metadata).filter((key) => key.startsWith('split.')),
    [],
  );
  return digest(out.bytes());
}

/** Serves a folder, with ranges; other names are 404. */
async function serve(t, folder) {
  const server = createServer((request, response) => {
    const path = join(folder, decodeURIComponent(new URL(request.url, 'http://x').pathname));
    let bytes;
    try {
      bytes = readFileSync(path);
    } catch {
      return response.writeHead(404).end();
    }
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [0, 0, bytes.length - 1];
    const end = Math.min(Number(last) + 1, bytes.length);
    response.writeHead(206, { 'content-range': `bytes ${first}-${end - 1}/${bytes.length}` });
    response.end(bytes.subarray(Number(first), end));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

test('a part of a GGUF model opens the whole model: by path, URL and list', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const { folder, paths, wanted } = await ggufParts(t, quantizer);
  for (const path of paths) assert.equal(await becomes(t, quantizer, path), wanted, path);
  const server = await serve(t, folder);
  assert.equal(await becomes(t, quantizer, new URL(`${server}/${paths[1].split('/').at(-1)}`)), wanted);
  for (const order of orders(paths.map(fileOf))) assert.equal(await becomes(t, quantizer, order), wanted);
  const unnamed = paths.map((path) => new Uint8Array(readFileSync(path)));
  assert.equal(await becomes(t, quantizer, rotated(unnamed, 1)), wanted);
  const { document } = await cliJson(['inspect', paths[0]]);
  assert.equal(document.tensors.length, 39);
  const out = join(folder, '..', 'whole.gguf');
  const { code, stderr } = await cli(['quantize', paths[0], '-o', out, '-p', 'q4_0']);
  assert.equal(code, 0, stderr);
  assert.equal(await digest(readFileSync(out)), wanted);
});

test('a part whose neighbours cannot be read is refused, with what to do', async (t) => {
  const quantizer = await quantizerFor(t);
  const { folder, paths } = await ggufParts(t, quantizer);
  const objects = quantizer.liveObjects;
  const files = paths.map(fileOf);
  const name = files[0].name;
  const alone = /is part 1 of 3 of a model, and part 2.* is not here\. Give the model's folder, or all of its parts/;
  const missing = { code: 'tensor-missing', where: name };
  await assert.rejects(quantizer.open(files[0]), { ...missing, message: alone });
  await assert.rejects(quantizer.open(files[1]), { code: 'tensor-missing', message: /is part 2 of 3 .* part 1, / });
  await assert.rejects(quantizer.open([files[0], files[2]]), {
    ...missing,
    message: /part 2, .*-00002-of-00003\.gguf/,
  });
  await assert.rejects(quantizer.open(new Uint8Array(readFileSync(paths[0]))), { code: 'tensor-missing' });
  const copy = new File([files[1]], 'copy.gguf');
  await assert.rejects(quantizer.open([...files, copy]), { code: 'file-invalid', message: /give each part once/ });
  const server = await serve(t, folder);
  rmSync(paths[2]);
  for (const source of [paths[0], new URL(`${server}/${name}`), folder])
    await assert.rejects(quantizer.open(source), {
      code: 'tensor-missing',
      message: /part 3, .*-00003-of-00003\.gguf/,
    });
  const { code, stderr } = await cli(['quantize', paths[0], '-o', join(folder, 'q.gguf'), '-p', 'q4_0']);
  assert.equal(code, 1);
  assert.match(stderr, /part 3, .*-00003-of-00003\.gguf/);
  renameSync(paths[0], join(folder, 'renamed.gguf'));
  await assert.rejects(quantizer.open(join(folder, 'renamed.gguf')), {
    code: 'tensor-missing',
    message: /is part 1 of 3 of a model, and part 2 is not here. .* call this one MODEL-00001-of-00003\.gguf/,
  });
  assert.equal(quantizer.liveObjects, objects);
});

test('a folder with parts of two GGUF models: their first parts are named', async (t) => {
  const quantizer = await quantizerFor(t);
  const { folder, paths } = await ggufParts(t, quantizer);
  for (const path of paths) cpSync(path, path.replace('parts/', 'parts/other-'));
  await assert.rejects(quantizer.open(folder), {
    code: 'source-invalid',
    message: /2 models; give one of other-.*-00001-/,
  });
  assert.equal((await modelFor(t, quantizer, paths[0])).tensors.length, 39);
});

test('a shard of safetensors opens its whole model, with and without index', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'model');
  cpSync(sharded, folder, { recursive: true });
  const shards = [1, 2, 3].map((n) => join(folder, `model-0000${n}-of-00003.safetensors`));
  const server = await serve(t, folder);
  const nameOf = (path) => path.split('/').at(-1);
  const whole = await modelFor(t, quantizer, folder);
  const listed = ({ tensors }) => tensors.map(({ name, file }) => [name, file]);
  const check = async () => {
    for (const source of [...shards, new URL(`${server}/${nameOf(shards[1])}`)]) {
      const model = await modelFor(t, quantizer, source);
      assert.deepEqual(listed(model), listed(whole));
      assert.equal(model.config.model_type, 'llama');
    }
  };
  await check();
  const index = join(folder, 'model.safetensors.index.json');
  const other = readFileSync(index, 'utf8').replaceAll('model-00003-of-00003', 'model-00002-of-00003');
  writeFileSync(index, other);
  await assert.rejects(quantizer.open(shards[2]), {
    code: 'source-invalid',
    message: /the index next to this file does not name it/,
  });
  rmSync(index);
  await check();
  const config = readFileSync(join(folder, 'config.json'));
  for (const order of orders(shards.map(fileOf))) {
    const model = await modelFor(t, quantizer, [...order, new File([config], 'config.json')]);
    assert.deepEqual(listed(model), listed(whole));
  }
  await assert.rejects(quantizer.open(fileOf(shards[0])), {
    code: 'tensor-missing',
    message: /is part 1 of 3 of a model/,
  });
  await assert.rejects(quantizer.open(shards.slice(1).map(fileOf)), {
    code: 'tensor-missing',
    message: /part 1, model-00001/,
  });
  const out = join(folder, '..', 'out');
  const { code, stderr } = await cli(['quantize', shards[0], '-o', out, '-p', 'int8']);
  assert.equal(code, 0, stderr);
  assert.equal((await modelFor(t, quantizer, out)).tensors.length > 39, true);
  assert.equal(readdirSync(out).includes('tokenizer.json'), readdirSync(folder).includes('tokenizer.json'));
});

test('external data of ONNX in subfolders and as ./name: from disk, handles, lists and URLs', async (t) => {
  const quantizer = await quantizerFor(t);
  const directory = (path) => ({
    kind: 'directory',
    name: path.split('/').at(-1),
    getFileHandle() {},
    async *entries() {
      for (const entry of readdirSync(path, { withFileTypes: true })) {
        const inner = join(path, entry.name);
        yield [
          entry.name,
          entry.isDirectory()
            ? directory(inner)
            : { kind: 'file', name: entry.name, getFile: async () => fileOf(inner) },
        ];
      }
    },
  });
  for (const location of ['w.bin', './w.bin', 'weights/w.bin', 'a/./b/w.bin']) {
    const folder = join(scratchFolder(t), 'model');
    const { bytes, data } = twoLayers({ location });
    mkdirSync(join(folder, location, '..'), { recursive: true });
    writeFileSync(join(folder, location), data);
    writeFileSync(join(folder, 'model.onnx'), bytes);
    const wanted = (await modelFor(t, quantizer, twoLayers().bytes)).tensors.map(({ name }) => name).sort();
    const server = await serve(t, folder);
    const file = new File([bytes], 'model.onnx');
    const sources = [folder, join(folder, 'model.onnx'), directory(folder), new URL(`${server}/model.onnx`)];
    for (const source of [
      ...sources,
      [file, new File([data], 'w.bin')],
      [file, new File([data], location.replace('./', ''))],
    ]) {
      const model = await modelFor(t, quantizer, source);
      assert.deepEqual(model.tensors.map(({ name }) => name).sort(), wanted, location);
    }
    await assert.rejects(quantizer.open(file), {
      code: 'source-invalid',
      where: location,
      message: /a list with both/,
    });
  }
});

test('a folder for transformers.js opens, and its ONNX file leads to config and tokenizer', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'repository');
  mkdirSync(join(folder, 'onnx'), { recursive: true });
  writeFileSync(join(folder, 'onnx', 'model.onnx'), twoLayers().bytes);
  const small = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];
  for (const name of small) writeFileSync(join(folder, name), name === 'config.json' ? '{"model_type":"bert"}' : '{}');
  const server = await serve(t, folder);
  for (const source of [folder, join(folder, 'onnx', 'model.onnx'), new URL(`${server}/onnx/model.onnx`)]) {
    const out = join(scratchFolder(t), 'out');
    const model = await modelFor(t, quantizer, source);
    assert.equal(model.config.model_type, 'bert');
    await quantizer.quantizeModel(model, 'int8', { target: out });
    assert.deepEqual(readdirSync(out).sort(), [...small.slice(0, 1), 'onnx', ...small.slice(1)]);
    const again = await modelFor(t, quantizer, out);
    assert.ok(again.tensors.some(({ name }) => name === 'up_quantized'));
  }
  writeFileSync(join(folder, 'onnx', 'model_fp16.onnx'), twoLayers().bytes);
  assert.equal((await modelFor(t, quantizer, folder)).files[0].name, 'model.onnx');
  renameSync(join(folder, 'onnx', 'model.onnx'), join(folder, 'onnx', 'decoder.onnx'));
  const both = await modelFor(t, quantizer, folder);
  assert.deepEqual([both.files[0].name, both.parts[0].files[0].name], ['model_fp16.onnx', 'decoder.onnx']);
});

/** Names of the files of a variant, as tools write them: parts by number, and their index. */
const variants = {
  transformers: [(n) => `model-0000${n}-of-00003.fp16.safetensors`, 'model.safetensors.index.fp16.json'],
  'diffusers, earlier': [(n) => `model.fp16-0000${n}-of-00003.safetensors`, 'model.fp16.safetensors.index.json'],
  'short numbers': [(n) => `weights_${n}-of-3.safetensors`, 'weights.safetensors.index.json'],
  'counted from 0': [(n) => `model-0000${n - 1}-of-00003.safetensors`, 'model.safetensors.index.json'],
};

for (const [tool, [nameOf, indexName]] of Object.entries(variants)) {
  test(`parts of a variant (${tool}) are one model: from the folder, the index and any part`, async (t) => {
    const quantizer = await quantizerFor(t);
    const folder = join(scratchFolder(t), 'model');
    cpSync(sharded, folder, { recursive: true });
    const wanted = (await modelFor(t, quantizer, folder)).tensors.map(({ name }) => name).sort();
    const parts = [1, 2, 3].map((n) => join(folder, nameOf(n)));
    for (const [at, path] of parts.entries())
      renameSync(join(folder, `model-0000${at + 1}-of-00003.safetensors`), path);
    const index = join(folder, 'model.safetensors.index.json');
    const text = readFileSync(index, 'utf8').replace(/model-0000(\d)-of-00003\.safetensors/g, (_, n) =>
      nameOf(Number(n)),
    );
    rmSync(index);
    writeFileSync(join(folder, indexName), text);
    for (const source of [folder, join(folder, indexName), ...parts, parts.map(fileOf)]) {
      const model = await modelFor(t, quantizer, source);
      assert.deepEqual(model.tensors.map(({ name }) => name).sort(), wanted, String(source));
    }
    const out = join(scratchFolder(t), 'out');
    await quantizer.quantizeModel(await modelFor(t, quantizer, parts[1]), 'int8', { target: out });
    assert.ok(readdirSync(out).includes(indexName));
    assert.equal((await modelFor(t, quantizer, out)).config.model_type, 'llama');
    rmSync(join(folder, indexName));
    for (const source of [folder, parts[0]])
      assert.equal((await modelFor(t, quantizer, source)).tensors.length, wanted.length);
    await assert.rejects(quantizer.open([fileOf(parts[1])]), { code: 'tensor-missing', message: /is part/ });
    rmSync(parts[2]);
    for (const source of [folder, parts[0]])
      await assert.rejects(quantizer.open(source), { code: 'tensor-missing', message: /is not here/ });
  });
}

test('of a folder with a model and a variant of it, the plain one is the model', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'model');
  cpSync(sharded, folder, { recursive: true });
  for (const n of [1, 2, 3])
    cpSync(
      join(folder, `model-0000${n}-of-00003.safetensors`),
      join(folder, `model-0000${n}-of-00003.fp16.safetensors`),
    );
  const filesOf = async () => (await modelFor(t, quantizer, folder)).files.map(({ name }) => name);
  const plain = [1, 2, 3].map((n) => `model-0000${n}-of-00003.safetensors`);
  assert.deepEqual(await filesOf(), plain);
  rmSync(join(folder, 'model.safetensors.index.json'));
  assert.deepEqual(await filesOf(), plain);
});
