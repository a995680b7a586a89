// Opening models: files, shards, folders, index files, bytes, blobs, handles, URLs, custom sources; and what is refused.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { open as openHandle } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createQuantizer } from '../../../dist/index.js';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { safetensors } from '../written_model.mjs';

const single = join(tinyLlama, 'model.safetensors');
const sharded = join(tinyLlama, 'bf16');
const indexFile = join(sharded, 'model.safetensors.index.json');

test('a single file', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, single);
  assert.equal(model.format, 'safetensors');
  assert.deepEqual(model.files, [{ name: 'model.safetensors', bytes: readFileSync(single).length }]);
  assert.equal(model.tensors.length, 39);
  assert.equal(model.config.model_type, 'llama', 'config.json beside the file');
  const projection = model.tensors.find(({ name }) => name === 'model.layers.0.self_attn.k_proj.weight');
  assert.deepEqual(
    {
      dtype: projection.dtype,
      shape: projection.shape,
      bytes: projection.bytes,
      layer: projection.layer,
      layerType: projection.layerType,
      file: projection.file,
    },
    {
      dtype: 'F32',
      shape: [64, 256],
      bytes: 65536,
      layer: 'model.layers.0.self_attn.k_proj',
      layerType: 'Linear',
      file: 'model.safetensors',
    },
  );
  assert.equal(projection.end - projection.begin, projection.bytes);
});

for (const [what, source] of [
  ['an index file', indexFile],
  ['a folder with an index', sharded],
]) {
  test(`${what}: all shards`, async (t) => {
    const quantizer = await quantizerFor(t);
    const model = await modelFor(t, quantizer, source);
    assert.deepEqual(
      model.files.map(({ name }) => name).sort(),
      [1, 2, 3].map((n) => `model-0000${n}-of-00003.safetensors`),
    );
    assert.equal(model.tensors.length, 39);
    assert.ok(model.tensors.every(({ dtype }) => dtype === 'BF16'));
    assert.equal(model.config.model_type, 'llama');
  });
}

test('a folder with one weight file', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  assert.deepEqual(
    model.files.map(({ name }) => name),
    ['model.safetensors'],
  );
});

test('every kind of source gives the same tensors', async (t) => {
  const quantizer = await quantizerFor(t);
  const bytes = new Uint8Array(readFileSync(single));
  const handle = await openHandle(single);
  t.after(() => handle.close());
  const reference = (await modelFor(t, quantizer, single)).tensors;
  const blob = new Blob([bytes]);
  for (const [what, source] of Object.entries({
    bytes,
    buffer: bytes.buffer,
    blob,
    file: new File([blob], 'model.safetensors'),
    response: new Response(bytes),
    'file URL': pathToFileURL(single),
    'file URL text': pathToFileURL(single).href,
    FileHandle: handle,
    'file system handle': {
      kind: 'file',
      name: 'model.safetensors',
      getFile: async () => new File([blob], 'model.safetensors'),
    },
    custom: {
      size: bytes.length,
      name: 'model.safetensors',
      read: async (offset, length) => bytes.subarray(offset, offset + length),
    },
  })) {
    const model = await quantizer.open(source);
    assert.deepEqual(model.tensors, reference, what);
    await model.close();
  }
});

test('a list of shards, with and without index and config', async (t) => {
  const quantizer = await quantizerFor(t);
  const shards = [1, 2, 3].map((n) => join(sharded, `model-0000${n}-of-00003.safetensors`));
  const plain = await modelFor(t, quantizer, shards);
  assert.equal(plain.tensors.length, 39);
  assert.equal(plain.config, null);
  const whole = await modelFor(t, quantizer, [...shards, indexFile, join(sharded, 'config.json')].reverse());
  assert.equal(whole.tensors.length, 39);
  assert.equal(whole.config.model_type, 'llama');
  assert.equal(whole.files.length, 3);
  await assert.rejects(quantizer.open([single, single]), { code: 'source-invalid', where: 'model.safetensors' });
});

test('a directory handle is a folder', async (t) => {
  const quantizer = await quantizerFor(t);
  const names = ['config.json', 'model.safetensors'];
  const handle = {
    kind: 'directory',
    name: 'tiny',
    getFileHandle() {},
    async *entries() {
      for (const name of names) {
        yield [
          name,
          { kind: 'file', name, getFile: async () => new File([readFileSync(join(tinyLlama, name))], name) },
        ];
      }
      yield ['subfolder', { kind: 'directory', name: 'subfolder' }];
    },
  };
  const model = await modelFor(t, quantizer, handle);
  assert.equal(model.tensors.length, 39);
  assert.equal(model.config.model_type, 'llama');
});

test('a missing shard is named', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'model');
  cpSync(sharded, folder, { recursive: true });
  rmSync(join(folder, 'model-00002-of-00003.safetensors'));
  await assert.rejects(quantizer.open(folder), {
    code: 'source-invalid',
    where: 'model-00002-of-00003.safetensors',
    message: /missing/,
  });
  assert.equal(quantizer.liveObjects, 0);
});

test('folders without a clear model are refused with what they hold', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  await assert.rejects(quantizer.open(folder), { code: 'source-invalid', message: /no weight file/ });
  for (const name of ['a.safetensors', 'b.safetensors']) copyFileSync(single, join(folder, name));
  await assert.rejects(quantizer.open(folder), { code: 'source-invalid', message: /a\.safetensors, b\.safetensors/ });
  await assert.rejects(quantizer.open(join(folder, 'none')), {
    code: 'source-invalid',
    message: /there is no such file or folder/,
  });
});

test('a requested format must be the one that is found', async (t) => {
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantizer.open(single, { format: 'zip' }), { code: 'argument-invalid' });
  for (const format of ['gguf', 'onnx', 'npy'])
    await assert.rejects(quantizer.open(single, { format }), { code: 'format-unknown', message: /safetensors/ });
});

test('a source says whether it is a path or a URL', async (t) => {
  const quantizer = await quantizerFor(t);
  const shards = ['model.safetensors', 'config.json'].map((name) => ({ path: join(tinyLlama, name) }));
  for (const source of [{ path: single }, { path: relative('', tinyLlama) }, { url: pathToFileURL(single) }, shards])
    assert.equal((await modelFor(t, quantizer, source)).tensors.length, 39, JSON.stringify(source));
  await assert.rejects(quantizer.open({ path: 'org/model' }), { code: 'source-invalid', message: /no such file/ });
  for (const source of [{ path: '' }, { path: 7 }, { hub: null }, { url: 'no address' }, { path: 'a', url: 'b' }])
    await assert.rejects(quantizer.open(source), { code: 'source-invalid' }, JSON.stringify(source));
  const wasmModule = await WebAssembly.compile(readFileSync(join(import.meta.dirname, '../../../dist/wasmquant.wasm')));
  const page = await createQuantizer({ threads: 0, wasmModule });
  t.after(() => page.close());
  await assert.rejects(page.open({ path: single }), { code: 'source-invalid', message: /a path, which is for Node/ });
});

test('values that are not a source are refused', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const source of [null, undefined, 7, {}, { size: -1, read() {} }, { size: 1.5, read() {} }]) {
    await assert.rejects(quantizer.open(source), { name: 'QuantizationError', code: 'source-invalid' });
  }
  await assert.rejects(quantizer.open([]), { code: 'source-invalid' });
});

test('a source that gives too little is truncated, one that fails keeps its cause', async (t) => {
  const quantizer = await quantizerFor(t);
  await assert.rejects(
    quantizer.open({ size: 1000, name: 'short.safetensors', read: async () => new Uint8Array(10) }),
    {
      code: 'file-truncated',
      where: 'short.safetensors',
      message: /byte 10/,
    },
  );
  const cause = new Error('cable pulled');
  await assert.rejects(quantizer.open({ size: 1000, read: () => Promise.reject(cause) }), {
    code: 'read-failed',
    cause,
  });
});

test('a config.json that is not an object is named', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  copyFileSync(single, join(folder, 'model.safetensors'));
  for (const text of ['{', '[]', '7']) {
    writeFileSync(join(folder, 'config.json'), text);
    await assert.rejects(quantizer.open(folder), { code: 'json-invalid', where: 'config.json' });
  }
});

test('metadata keys may be any text', async (t) => {
  const quantizer = await quantizerFor(t);
  const text = JSON.stringify({ a: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } });
  const withMetadata = `{"__metadata__":{"__proto__":"x","format":"pt"},${text.slice(1)}`;
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(withMetadata.length));
  const model = await modelFor(
    t,
    quantizer,
    new Uint8Array(Buffer.concat([length, Buffer.from(withMetadata), Buffer.alloc(4)])),
  );
  assert.equal(Object.getOwnPropertyDescriptor(model.metadata, '__proto__').value, 'x');
  assert.equal(model.metadata.format, 'pt');
});

test('a header longer than the first read takes one more read', async (t) => {
  const quantizer = await quantizerFor(t);
  const tensors = {};
  for (let n = 0; n < 6000; ++n)
    tensors[`layer.${n}.with.a.rather.long.name.weight`] = { dtype: 'F32', shape: [1], data: new Float32Array(1) };
  const bytes = safetensors(tensors);
  const reads = [];
  const source = {
    size: bytes.length,
    read: async (offset, length) => {
      reads.push([offset, length]);
      return bytes.subarray(offset, offset + length);
    },
  };
  const model = await modelFor(t, quantizer, source);
  assert.equal(model.tensors.length, 6000);
  assert.equal(reads.length, 2);
});

/** Serves a folder; `ranges: false` ignores Range headers. What `misbehave` answers itself is not served. */
async function serve(t, folder, ranges, misbehave = () => false) {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(`${request.url} ${request.headers.range ?? ''}`);
    if (misbehave(request, response)) return;
    let bytes;
    try {
      bytes = readFileSync(join(folder, decodeURIComponent(request.url.slice(1))));
    } catch {
      response.writeHead(404).end();
      return;
    }
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    if (!ranges || !range) {
      response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
      return;
    }
    const [first, last] = [Number(range[1]), Math.min(Number(range[2]), bytes.length - 1)];
    response.writeHead(206, { 'content-range': `bytes ${first}-${last}/${bytes.length}`, etag: '"1"' });
    response.end(bytes.subarray(first, last + 1));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { base: `http://127.0.0.1:${server.address().port}/`, requests };
}

/** Servers that drop the connection of the first `drops` requests for config.json. */
for (const drops of [2, Number.POSITIVE_INFINITY]) {
  test(`config.json next to a URL, when ${drops} connections drop`, async (t) => {
    let asked = 0;
    const { base } = await serve(t, tinyLlama, true, (request, response) => {
      if (!request.url.endsWith('/config.json') || ++asked > drops) return false;
      response.destroy();
      return true;
    });
    const quantizer = await quantizerFor(t);
    const opening = modelFor(t, quantizer, `${base}model.safetensors`);
    if (drops === 2) assert.equal((await opening).config.model_type, 'llama');
    else await assert.rejects(opening, { code: 'source-invalid', where: `${base}config.json` });
    assert.ok(asked > 2, `${asked} requests`);
  });
}

for (const ranges of [true, false]) {
  test(`URLs ${ranges ? 'with' : 'without'} range requests, single and sharded`, async (t) => {
    const quantizer = await quantizerFor(t);
    const { base, requests } = await serve(t, tinyLlama, ranges);
    const model = await modelFor(t, quantizer, `${base}model.safetensors`);
    assert.equal(model.tensors.length, 39);
    assert.equal(model.config.model_type, 'llama');
    if (ranges)
      assert.ok(
        requests.every((line) => line.includes('bytes=')),
        'the file is never fetched whole',
      );
    const shards = await modelFor(t, quantizer, new URL('bf16/model.safetensors.index.json', base));
    assert.equal(shards.tensors.length, 39);
    const target = join(scratchFolder(t), 'out');
    const { files } = await quantizer.quantizeModel(shards, 'int4_wo_32', { target });
    assert.ok(files.some(({ name }) => name === 'generation_config.json'));
    const local = await modelFor(t, quantizer, sharded);
    await quantizer.quantizeModel(local, 'int4_wo_32', { target: `${target}-local` });
    for (const { name } of files) {
      assert.deepEqual(readFileSync(join(target, name)), readFileSync(join(`${target}-local`, name)), name);
    }
    await assert.rejects(quantizer.open(`${base}none.safetensors`), { code: 'source-invalid', message: /404/ });
  });
}

test('a server that cannot be reached is named', async (t) => {
  const quantizer = await quantizerFor(t);
  await assert.rejects(quantizer.open('http://127.0.0.1:9/model.safetensors'), {
    code: 'source-invalid',
    where: /127\.0\.0\.1:9/,
  });
});

test('closing frees the index, closing twice is allowed, and a closed model is refused', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await quantizer.open(single);
  assert.equal(quantizer.liveObjects, 1);
  await model.close();
  await model[Symbol.asyncDispose]();
  assert.equal(quantizer.liveObjects, 0);
  await assert.rejects(() => quantizer.plan(model, 'int8'), { code: 'state-invalid' });
});

test('a model of another quantizer is refused', async (t) => {
  const [one, two] = [await quantizerFor(t), await quantizerFor(t)];
  const model = await modelFor(t, one, single);
  await assert.rejects(() => two.plan(model, 'int8'), { code: 'argument-invalid' });
  await assert.rejects(() => one.plan({ ...model }, 'int8'), { code: 'argument-invalid' });
});

test('files with spaces and signs in their names are found next to an index', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = join(scratchFolder(t), 'a folder #1');
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'part one+.safetensors'),
    safetensors({ 'a.weight': { dtype: 'F32', shape: [2], data: new Float32Array(2) } }),
  );
  writeFileSync(
    join(folder, 'model.safetensors.index.json'),
    JSON.stringify({ metadata: {}, weight_map: { 'a.weight': 'part one+.safetensors' } }),
  );
  assert.equal((await modelFor(t, quantizer, folder)).tensors.length, 1);
  const { base } = await serve(t, folder, true);
  assert.equal((await modelFor(t, quantizer, `${base}model.safetensors.index.json`)).tensors.length, 1);
});

test('a sibling file of 3 GiB is an error that names it, and ends nothing', async (t) => {
  const folder = scratchFolder(t);
  cpSync(tinyLlama, folder, { recursive: true });
  const path = join(folder, 'tokenizer.json');
  writeFileSync(path, '');
  truncateSync(path, 3 * 2 ** 30);
  const model = await modelFor(t, await quantizerFor(t), folder);
  await assert.rejects(async () => model.siblingFile('tokenizer.json'), {
    code: 'file-too-large',
    where: 'tokenizer.json',
  });
});

test('a pipe is not accepted as a file anywhere', async (t) => {
  const quantizer = await quantizerFor(t);
  const folder = scratchFolder(t);
  const pipe = (name) => execFileSync('mkfifo', [join(folder, name)]);
  pipe('model.safetensors');
  const refused = { code: 'source-invalid', message: /a pipe or a device/ };
  await assert.rejects(quantizer.open(join(folder, 'model.safetensors')), refused);
  rmSync(join(folder, 'model.safetensors'));
  copyFileSync(join(tinyLlama, 'model.safetensors'), join(folder, 'model.safetensors'));
  pipe('config.json');
  await assert.rejects(quantizer.open(folder), refused);
});
