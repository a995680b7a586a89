// A failure at every step of every kind of target: nothing of the run is left, and what was there before is as it was.
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openTarget } from '../../../dist/io/target.js';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const sharded = join(tinyLlama, 'bf16');
const preset = 'int8';

/** Counts the steps of a target; the one numbered `failing` fails. */
class Steps {
  count = 0;
  constructor(failing) {
    this.failing = failing;
  }
  async take(what) {
    this.count += 1;
    if (this.count === this.failing) throw new DOMException(`${what} failed`, 'UnknownError');
  }
}

const missing = () => new DOMException('missing', 'NotFoundError');

/** A file of the File System Access API in memory. `kind`: writable streams, access handles in place, or neither. */
function memoryFile(files, path, steps, kind, open) {
  const growing = (held, at, data) => {
    const longer = new Uint8Array(Math.max(held.length, at + data.length));
    longer.set(held);
    longer.set(data, at);
    return longer;
  };
  const streams = {
    async createWritable() {
      await steps.take('createWritable');
      let bytes = new Uint8Array(0);
      open.add(path);
      return {
        async write({ position, data }) {
          await steps.take('write');
          bytes = growing(bytes, position, data);
        },
        async close() {
          await steps.take('close');
          open.delete(path);
          files.set(path, bytes);
        },
        abort: async () => void open.delete(path),
      };
    },
  };
  const inPlace = {
    async createSyncAccessHandle() {
      await steps.take('createSyncAccessHandle');
      open.add(path);
      return {
        write(bytes, { at }) {
          steps.count += 1;
          if (steps.count === steps.failing) return 0;
          files.set(path, growing(files.get(path), at, bytes));
          return bytes.length;
        },
        truncate: (size) => void files.set(path, files.get(path).slice(0, size)),
        flush() {},
        close: () => void open.delete(path),
      };
    },
  };
  return {
    kind: 'file',
    name: path.split('/').at(-1),
    async getFile() {
      await steps.take('getFile');
      return new File([files.get(path)], path);
    },
    ...(kind === 'streams' && streams),
    ...(kind === 'in place' && inPlace),
  };
}

/** A folder of handles; folders are names that end in a slash. */
function memoryFolder(files, steps, kind, open, prefix = '') {
  const entry = async (path, create, made) => {
    await steps.take('getHandle');
    if (files.has(path)) return;
    if (!create) throw missing();
    files.set(path, made);
  };
  return {
    kind: 'directory',
    name: 'picked',
    async getFileHandle(name, { create = false } = {}) {
      await entry(prefix + name, create, new Uint8Array(0));
      return memoryFile(files, prefix + name, steps, kind, open);
    },
    async getDirectoryHandle(name, { create = false } = {}) {
      await entry(`${prefix}${name}/`, create, null);
      return memoryFolder(files, steps, kind, open, `${prefix}${name}/`);
    },
    async *entries() {
      for (const path of files.keys())
        if (path.startsWith(prefix) && !path.slice(prefix.length).includes('/'))
          yield [path.slice(prefix.length), { kind: 'file' }];
    },
    async removeEntry(name) {
      const isFolder = files.has(`${prefix}${name}/`);
      const path = isFolder ? `${prefix}${name}/` : prefix + name;
      if (!files.has(path)) throw missing();
      if ([...files.keys()].some((other) => other !== path && isFolder && other.startsWith(path)))
        throw new DOMException('is not empty', 'InvalidModificationError');
      files.delete(path);
    },
  };
}

const contents = (files) =>
  [...files].map(([name, bytes]) => [name, bytes && Buffer.from(bytes).toString('base64')]).sort();

/** Runs with a failure at step 1, 2, ... until one run succeeds; returns its number of steps. */
async function failEachStep(run, check) {
  for (let failing = 1; ; ++failing) {
    const steps = new Steps(failing);
    try {
      await run(steps);
    } catch (error) {
      assert.equal(error.name, 'QuantizationError', error.stack);
      assert.match(error.code, /^(target-invalid|write-failed|target-exists)$/, error.message);
      check(failing, error);
      continue;
    }
    assert.ok(steps.count < failing, `step ${failing} failed in silence`);
    return failing;
  }
}

for (const kind of ['streams', 'in place'])
  test(`handles written through ${kind}`, async (t) => {
    const quantizer = await quantizerFor(t);
    const model = await modelFor(t, quantizer, sharded);
    const before = kind === 'streams' ? { 'config.json': 'mine', 'notes.txt': 'mine' } : { 'notes.txt': 'mine' };
    const fresh = () => new Map(Object.entries(before).map(([name, text]) => [name, new TextEncoder().encode(text)]));
    let [files, open] = [fresh(), new Set()];
    const run = (steps) => {
      [files, open] = [fresh(), new Set()];
      return quantizer.quantizeModel(model, preset, {
        target: memoryFolder(files, steps, kind, open),
        overwrite: true,
      });
    };
    const steps = await failEachStep(run, (failing, error) => {
      const left = contents(files).filter(([name]) => name !== 'config.json' || kind !== 'streams');
      assert.deepEqual(
        left,
        contents(fresh()).filter(([name]) => name !== 'config.json'),
        `${failing}: ${error.message}`,
      );
      assert.deepEqual([...open], [], `step ${failing}: files are still open`);
    });
    assert.ok(steps > 20, `${steps} steps`);
    assert.ok(files.get('config.json').length > 10);
  });

test('a handle without any way to write', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, sharded);
  const [files, open] = [new Map(), new Set()];
  const target = memoryFolder(files, new Steps(0), 'none', open);
  await assert.rejects(quantizer.quantizeModel(model, preset, { target }), {
    code: 'target-invalid',
    message: /writes handles in workers only \(createWritable is missing\)/,
  });
  assert.deepEqual(contents(files), []);
  const held = new Map([['config.json', new TextEncoder().encode('mine')]]);
  const again = memoryFolder(held, new Steps(0), 'in place', open);
  await assert.rejects(quantizer.quantizeModel(model, preset, { target: again, overwrite: true }), {
    code: 'target-invalid',
    message: /config\.json: .*a failure would destroy what it holds/,
  });
  assert.deepEqual(contents(held), [['config.json', Buffer.from('mine').toString('base64')]]);
});

test('a folder that the run makes among handles goes with its files', async () => {
  const files = new Map([['0_Kept/', null]]);
  const target = openTarget(memoryFolder(files, new Steps(0), 'streams', new Set()), false);
  for (const name of ['model.safetensors', '1_Pooling/config.json', '1_Pooling/more.json', '0_Kept/config.json'])
    await target.create(name, 1);
  assert.equal(files.size, 6);
  await target.abort(new Error('enough'));
  assert.deepEqual(contents(files), [['0_Kept/', null]]);
});

test('streams by name: each is closed or aborted', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, sharded);
  let open = new Set();
  const run = (steps) => {
    open = new Set();
    const target = {
      async write(name) {
        await steps.take('open');
        open.add(name);
        return new WritableStream({
          write: () => steps.take('write'),
          async close() {
            open.delete(name);
            await steps.take('close');
          },
          abort: () => void open.delete(name),
        });
      },
    };
    return quantizer.quantizeModel(model, preset, { target });
  };
  // A stream whose own write fails is over, and its abort is not called.
  await failEachStep(run, (failing, error) => {
    if (!/write failed/.test(error.message)) assert.deepEqual([...open], [], `step ${failing}: ${error.message}`);
  });
});

test('a target that opens after the run has ended', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, sharded);
  for (const kind of ['handle', 'stream']) {
    const controller = new AbortController();
    const [files, open, aborted] = [new Map(), new Set(), []];
    const late = () => new Promise((resolve) => setTimeout(resolve, 50));
    const folder = memoryFolder(files, new Steps(0), 'streams', open);
    const target =
      kind === 'handle'
        ? {
            ...folder,
            async getFileHandle(name, options) {
              if (options?.create) {
                controller.abort(new Error('enough'));
                await late();
              }
              return folder.getFileHandle(name, options);
            },
          }
        : {
            async write(name) {
              controller.abort(new Error('enough'));
              await late();
              return new WritableStream({ abort: () => void aborted.push(name) });
            },
          };
    await assert.rejects(quantizer.quantizeModel(model, preset, { target, signal: controller.signal }), /enough/);
    assert.deepEqual(contents(files), [], kind);
    assert.deepEqual([...open], [], kind);
    if (kind === 'stream') assert.equal(aborted.length, 1);
  }
});

test('a path below a file', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, sharded);
  const folder = scratchFolder(t);
  writeFileSync(join(folder, 'file'), 'mine');
  await assert.rejects(quantizer.quantizeModel(model, preset, { target: join(folder, 'file/deep/out') }), {
    code: 'target-invalid',
  });
  assert.deepEqual(readdirSync(folder), ['file']);
});
