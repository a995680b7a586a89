// Where a run's files go: folders, streams by name, handles; what is there already.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { parsed } from '../written_model.mjs';
import { digest, int4 } from './run_sources.mjs';

const sharded = join(tinyLlama, 'bf16');

/** Files of a folder by name. */
const contents = (folder) =>
  Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(join(folder, name))]),
  );

/** A folder of the File System Access API, in memory: files appear when their stream is closed. */
function memoryDirectory(existing = {}) {
  const files = new Map(Object.entries(existing));
  return {
    kind: 'directory',
    name: 'picked',
    files,
    async getFileHandle(name, { create = false } = {}) {
      if (!files.has(name)) {
        if (!create) throw new DOMException('no such file', 'NotFoundError');
        files.set(name, new Uint8Array(0));
      }
      return {
        kind: 'file',
        name,
        getFile: async () => new File([files.get(name)], name),
        async createWritable() {
          let bytes = new Uint8Array(0);
          return {
            async write({ type, position, data }) {
              assert.equal(type, 'write');
              if (bytes.length < position + data.length) {
                const longer = new Uint8Array(position + data.length);
                longer.set(bytes);
                bytes = longer;
              }
              bytes.set(data, position);
            },
            close: async () => void files.set(name, bytes),
            abort: async () => {},
          };
        },
      };
    },
    removeEntry: async (name) => void files.delete(name),
  };
}

test('a folder output is a model: weights, index, config.json with the block, and the small files', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, sharded);
  const source = join(scratchFolder(t), 'source');
  cpSync(sharded, source, { recursive: true });
  for (const [name, text] of [
    ['merges.txt', 'a b'],
    ['chat_template.jinja', '{{ x }}'],
    ['spiece.model', '\0'],
    ['pytorch_model.bin', 'other weights'],
    ['.hidden.json', '{}'],
  ]) {
    writeFileSync(join(source, name), text);
  }
  mkdirSync(join(source, 'onnx'));
  const whole = await modelFor(t, quantizer, source);
  const target = join(scratchFolder(t), 'deep', 'er', 'out');
  const report = await quantizer.quantizeModel(whole, int4, { target });
  const files = contents(target);
  assert.deepEqual(Object.keys(files), [
    'chat_template.jinja',
    'config.json',
    'generation_config.json',
    'merges.txt',
    'model-00001-of-00003.safetensors',
    'model-00002-of-00003.safetensors',
    'model-00003-of-00003.safetensors',
    'model.safetensors.index.json',
    'spiece.model',
  ]);
  assert.deepEqual(
    report.files.map(({ name, bytes }) => [name, bytes]).sort(),
    Object.entries(files)
      .map(([name, bytes]) => [name, bytes.length])
      .sort(),
  );
  const config = JSON.parse(files['config.json']);
  assert.equal(config.model_type, 'llama');
  assert.deepEqual(config.quantization_config, (await quantizer.plan(model, int4)).quantizationConfig);
  const { weight_map } = JSON.parse(files['model.safetensors.index.json']);
  for (const [tensor, file] of Object.entries(weight_map))
    assert.ok(tensor in parsed(new Uint8Array(files[file])).header, tensor);
  const again = await modelFor(t, quantizer, target);
  assert.equal(again.tensors.length, Object.keys(weight_map).length);
});

test('{write(name)} gets one stream after another, weights first, config.json last', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, sharded);
  const path = join(scratchFolder(t), 'out');
  await quantizer.quantizeModel(model, int4, { target: path });
  const streams = new Map();
  let open = 0;
  await quantizer.quantizeModel(model, int4, {
    target: {
      async write(name) {
        assert.equal(open++, 0, 'one at a time');
        const sink = memoryStream();
        const writer = sink.stream.getWriter();
        streams.set(name, sink);
        return new WritableStream({
          write: (chunk) => writer.write(chunk),
          close() {
            open -= 1;
            return writer.close();
          },
        });
      },
    },
  });
  assert.equal([...streams.keys()].at(-1), 'config.json');
  assert.match([...streams.keys()][0], /^model-0000\d-of-00003\.safetensors$/);
  const expected = contents(path);
  assert.deepEqual([...streams.keys()].sort(), Object.keys(expected));
  for (const [name, sink] of streams) assert.equal(await digest(sink.bytes()), await digest(expected[name]), name);
});

test('file and directory handles', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await modelFor(t, quantizer, sharded);
  const path = join(scratchFolder(t), 'out');
  await quantizer.quantizeModel(model, int4, { target: path });
  const directory = memoryDirectory();
  await quantizer.quantizeModel(model, int4, { target: directory });
  const expected = contents(path);
  assert.deepEqual([...directory.files.keys()].sort(), Object.keys(expected));
  for (const [name, bytes] of directory.files) assert.equal(await digest(bytes), await digest(expected[name]), name);

  await assert.rejects(quantizer.quantizeModel(model, int4, { target: directory }), { code: 'target-exists' });
  await quantizer.quantizeModel(model, int4, { target: directory, overwrite: true });

  const single = await modelFor(t, quantizer, tinyLlama);
  const handle = await memoryDirectory().getFileHandle('picked.safetensors', { create: true });
  const report = await quantizer.quantizeModel(single, int4, { target: handle });
  assert.deepEqual(report.files, [{ name: 'picked.safetensors', bytes: (await handle.getFile()).size }]);
  assert.ok(report.diagnostics.some(({ code }) => code === 'config-not-written'));
});

test('overwriting replaces the earlier output and removes its leftovers, nothing else', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1 });
  const [shards, single] = [await modelFor(t, quantizer, sharded), await modelFor(t, quantizer, tinyLlama)];
  const target = join(scratchFolder(t), 'out');
  await quantizer.quantizeModel(shards, int4, { target });
  writeFileSync(join(target, 'notes.txt'), 'mine');
  writeFileSync(join(target, 'adapter.safetensors'), 'mine');
  await quantizer.quantizeModel(single, int4, { target, overwrite: true });
  const names = readdirSync(target);
  assert.deepEqual(names.filter((name) => /safetensors/.test(name)).sort(), [
    'adapter.safetensors',
    'model.safetensors',
  ]);
  assert.ok(names.includes('notes.txt'));
});

test('a name that leaves the folder reaches no target', async (t) => {
  const quantizer = await quantizerFor(t);
  const bytes = readFileSync(join(tinyLlama, 'model.safetensors'));
  const read = async (offset, length) => bytes.subarray(offset, offset + length);
  for (const name of [
    '../../x.safetensors',
    'a/../../x.safetensors',
    '/x.safetensors',
    'C:x.safetensors',
    '..\\x.safetensors',
  ]) {
    const model = await modelFor(t, quantizer, { size: bytes.length, name, read });
    const asked = [];
    const write = async (file) => {
      asked.push(file);
      return new WritableStream();
    };
    for (const target of [{ write }, join(scratchFolder(t), 'out')])
      await assert.rejects(quantizer.quantizeModel(model, 'int8', { target }), { code: 'target-invalid' }, name);
    assert.deepEqual(asked, []);
  }
});
