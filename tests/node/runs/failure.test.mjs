// What goes wrong: aborts, full sinks, existing output, bad weights, dead workers. Nothing is left behind, nothing lost.
import assert from 'node:assert/strict';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { memoryStream, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const int4 = 'int4_wo_32';

/** All paths below a folder. */
const listing = (folder) => readdirSync(folder, { recursive: true }).sort();

function largeModel(path, megabytes = 48) {
  const rows = (megabytes * 2 ** 20) / 4096;
  writeFileSync(path, safetensors({ 'big.weight': { dtype: 'F32', shape: [rows, 1024], data: noise(rows * 1024) } }));
  return path;
}

for (const threads of [0, 2]) {
  for (const kind of ['file', 'new folder', 'old folder']) {
    test(`abort with ${threads} threads into a ${kind} leaves nothing`, async (t) => {
      const folder = scratchFolder(t);
      const quantizer = await quantizerFor(t, { threads });
      const model = await modelFor(t, quantizer, largeModel(join(folder, 'in.safetensors')));
      const place = join(folder, 'place');
      if (kind === 'old folder') {
        mkdirSync(join(place, 'out'), { recursive: true });
        writeFileSync(join(place, 'out', 'model.safetensors'), 'earlier output');
        writeFileSync(join(place, 'out', 'in.safetensors'), 'earlier output');
      }
      const before = listing(folder);
      const target = join(place, kind === 'file' ? 'out.safetensors' : 'out');
      const abort = new AbortController();
      const reason = new Error('enough');
      let calls = 0;
      const running = quantizer.quantizeModel(model, int4, {
        target,
        overwrite: true,
        signal: abort.signal,
        onProgress() {
          calls += 1;
          abort.abort(reason);
        },
      });
      await assert.rejects(running, (error) => error === reason);
      assert.ok(calls >= 1);
      assert.deepEqual(listing(folder), before);
      if (kind === 'old folder') assert.equal(readFileSync(join(target, 'in.safetensors'), 'utf8'), 'earlier output');
      assert.equal(quantizer.liveObjects, 1, 'only the model');
      // The quantizer still works.
      await quantizer.quantizeModel(model, int4, { target, overwrite: true });
    });
  }
}

test('an aborted stream gets the reason', async (t) => {
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    const abort = new AbortController();
    const { stream, state } = memoryStream(async () => abort.abort());
    await assert.rejects(quantizer.quantizeModel(model, int4, { target: stream, signal: abort.signal }), {
      name: 'AbortError',
    });
    assert.equal(state.closed, false);
    assert.equal(state.aborted?.name, 'AbortError');
  }
});

for (const hangs of [false, true]) {
  test(`abort while the sink hangs${hangs ? ' forever' : ''}`, async (t) => {
    const quantizer = await quantizerFor(t, { threads: 1 });
    const model = await modelFor(t, quantizer, tinyLlama);
    const abort = new AbortController();
    const stream = new WritableStream({
      write(_, controller) {
        setTimeout(() => abort.abort(), 100);
        return new Promise((_resolve, reject) => {
          if (!hangs) controller.signal.addEventListener('abort', reject);
        });
      },
    });
    const running = quantizer.quantizeModel(model, int4, { target: stream, signal: abort.signal });
    await assert.rejects(running, { name: 'AbortError' });
  });
}

test('a signal that is aborted already', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const signal = AbortSignal.abort();
  await assert.rejects(quantizer.quantizeModel(model, int4, { target: join(folder, 'out'), signal }), {
    name: 'AbortError',
  });
  await assert.rejects(quantizer.compare(model, model, { signal }), { name: 'AbortError' });
  assert.deepEqual(listing(folder), []);
});

test('existing output is refused without overwrite', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  writeFileSync(join(folder, 'out.safetensors'), 'earlier');
  mkdirSync(join(folder, 'full'));
  writeFileSync(join(folder, 'full', 'note.txt'), 'mine');
  mkdirSync(join(folder, 'empty'));
  for (const name of ['out.safetensors', 'full']) {
    await assert.rejects(quantizer.quantizeModel(model, int4, { target: join(folder, name) }), {
      code: 'target-exists',
      where: new RegExp(`${name}$`),
    });
  }
  assert.equal(readFileSync(join(folder, 'out.safetensors'), 'utf8'), 'earlier');
  assert.deepEqual(listing(join(folder, 'full')), ['note.txt']);
  await quantizer.quantizeModel(model, int4, { target: join(folder, 'empty') });
  assert.ok(listing(join(folder, 'empty')).includes('config.json'));
});

test('output never overwrites its input', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const path = join(folder, 'model.safetensors');
  writeFileSync(path, readFileSync(join(tinyLlama, 'model.safetensors')));
  const model = await modelFor(t, quantizer, path);
  symlinkSync(folder, `${folder}-link`);
  for (const target of [
    path,
    folder,
    join(folder, '..', folder.split('/').at(-1)),
    `${folder}-link`,
    join(`${folder}-link`, 'model.safetensors'),
  ]) {
    await assert.rejects(
      quantizer.quantizeModel(model, int4, { target, overwrite: true }),
      { code: 'target-invalid', message: /input/ },
      target,
    );
  }
  assert.deepEqual(readFileSync(path), readFileSync(join(tinyLlama, 'model.safetensors')));
  const { unlinkSync } = await import('node:fs');
  unlinkSync(`${folder}-link`);
});

test('targets that cannot hold the output are refused', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const shards = await modelFor(t, quantizer, join(tinyLlama, 'bf16'));
  const locked = new WritableStream();
  locked.getWriter();
  for (const target of [undefined, null, 7, {}, '', locked, new WritableStream(), join(folder, 'one.safetensors')]) {
    await assert.rejects(
      quantizer.quantizeModel(shards, int4, { target }),
      { name: 'QuantizationError', code: 'target-invalid' },
      String(target),
    );
  }
  writeFileSync(join(folder, 'file'), '');
  await assert.rejects(quantizer.quantizeModel(shards, int4, { target: join(folder, 'file', 'out') }), {
    code: 'target-invalid',
  });
  assert.deepEqual(listing(folder), ['file']);
});

test('a sink that fails ends the run with its cause', async (t) => {
  for (const threads of [0, 2]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, tinyLlama);
    const cause = new Error('disk full');
    let writes = 0;
    const { stream } = memoryStream(async () => {
      if (++writes === 3) throw cause;
    });
    await assert.rejects(quantizer.quantizeModel(model, int4, { target: stream }), { code: 'write-failed', cause });
    assert.equal(quantizer.liveObjects, 1);
  }
});

test('a callback that throws ends the run', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 1 });
  const model = await modelFor(t, quantizer, tinyLlama);
  const mistake = new TypeError('mine');
  const onProgress = () => {
    throw mistake;
  };
  await assert.rejects(
    quantizer.quantizeModel(model, int4, { target: join(folder, 'out'), onProgress }),
    (error) => error === mistake,
  );
  assert.deepEqual(listing(folder), []);
});

test('a weight that is not finite: tensor and index are named, nothing is left', async (t) => {
  for (const [threads, value] of [
    [0, Number.NaN],
    [2, Number.POSITIVE_INFINITY],
  ]) {
    const folder = scratchFolder(t);
    const quantizer = await quantizerFor(t, { threads });
    const data = noise(64 * 256);
    data[4321] = value;
    const model = await modelFor(
      t,
      quantizer,
      safetensors({ 'layer.weight': { dtype: 'F32', shape: [64, 256], data } }),
    );
    for (const preset of ['int8', 'int8_per_tensor', int4]) {
      const running = quantizer.quantizeModel(model, preset, { target: join(folder, 'out') });
      await assert.rejects(running, {
        name: 'QuantizationError',
        code: 'value-not-finite',
        where: /layer\.weight/,
        message: /4321|\[16, 225\]/,
      });
    }
    assert.deepEqual(listing(folder), []);
  }
});

test('a file that is truncated while it is read', async (t) => {
  for (const threads of [0, 2]) {
    const folder = scratchFolder(t);
    const quantizer = await quantizerFor(t, { threads });
    const path = largeModel(join(folder, 'in.safetensors'), 8);
    const model = await modelFor(t, quantizer, path);
    const cut = statSync(path).size - 1_000_000;
    truncateSync(path, cut);
    const running = quantizer.quantizeModel(model, int4, { target: join(folder, 'out') });
    await assert.rejects(running, {
      code: 'file-truncated',
      where: 'in.safetensors',
      message: new RegExp(`byte ${cut}`),
    });
    assert.deepEqual(listing(folder), ['in.safetensors']);
  }
});

test('a custom source that fails midway', async (t) => {
  for (const threads of [0, 2]) {
    const folder = scratchFolder(t);
    const quantizer = await quantizerFor(t, { threads });
    const bytes = new Uint8Array(readFileSync(join(tinyLlama, 'model.safetensors')));
    let reads = 0;
    const source = {
      size: bytes.length,
      name: 'mine.safetensors',
      async read(offset, length) {
        if (++reads > 6) throw new Error('cable pulled');
        return bytes.subarray(offset, offset + length);
      },
    };
    const model = await modelFor(t, quantizer, source);
    await assert.rejects(quantizer.quantizeModel(model, int4, { target: join(folder, 'out') }), {
      code: 'read-failed',
      where: 'mine.safetensors',
      message: /cable pulled/,
    });
    assert.deepEqual(listing(folder), []);
  }
});

test('a source may keep the bytes it returned: they are not transferred', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 2 });
  const bytes = new Uint8Array(readFileSync(join(tinyLlama, 'model.safetensors')));
  const given = [];
  const source = {
    size: bytes.length,
    async read(offset, length) {
      const chunk = bytes.slice(offset, offset + length);
      given.push(chunk);
      return chunk;
    },
  };
  await quantizer.quantizeModel(await modelFor(t, quantizer, source), int4, { target: memoryStream().stream });
  assert.ok(given.every((chunk) => chunk.buffer.byteLength > 0));
});

test('bad configs and formats leave no file', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const run = (config, options) => quantizer.quantizeModel(model, config, { target: join(folder, 'out'), ...options });
  await assert.rejects(run({ global_quant_config: { weight: { dtype: 'int99' } } }), { code: 'config-invalid' });
  const bytes = new File([readFileSync(join(tinyLlama, 'model.safetensors'))], 'model.safetensors');
  const bare = await modelFor(t, quantizer, bytes);
  const onnx = { target: join(folder, 'out'), format: 'onnx' };
  await assert.rejects(quantizer.quantizeModel(bare, int4, onnx), { code: 'config-invalid', where: 'config.json' });
  await bare.close();
  await assert.rejects(run(int4, { format: 'gguf' }), { code: 'format-unsupported', message: /q4_k_m/ });
  await assert.rejects(run('q4_k_m', { format: 'quark' }), {
    code: 'format-unsupported',
    message: /quark cannot store/,
  });
  await assert.rejects(run({ dialect: 'gguf', recipe: 'q4_k_x' }), { code: 'config-invalid' });
  await assert.rejects(run(int4, { format: 'zip' }), { name: 'QuantizationError' });
  assert.deepEqual(listing(folder), []);
  assert.equal(quantizer.liveObjects, 1);
});

test('disposing the quantizer ends a run', async (t) => {
  const folder = scratchFolder(t);
  const quantizer = await quantizerFor(t, { threads: 2 });
  const model = await quantizer.open(largeModel(join(folder, 'in.safetensors')));
  const running = quantizer.quantizeModel(model, int4, {
    target: join(folder, 'out'),
    onProgress: () => quantizer[Symbol.asyncDispose](),
  });
  await assert.rejects(running, { code: 'state-invalid' });
  assert.deepEqual(listing(folder), ['in.safetensors']);
});

test('a worker script that cannot be loaded is worker-crashed', async (t) => {
  const quantizer = await quantizerFor(t, { threads: 1, workerUrl: new URL('file:///no/such/worker.js') });
  const model = await modelFor(t, quantizer, tinyLlama);
  const target = join(mkdtempSync(join(scratchFolder(t), 'x')), 'out');
  await assert.rejects(quantizer.quantizeModel(model, int4, { target }), {
    code: 'worker-crashed',
    message: /no\/such\/worker\.js/,
  });
});
