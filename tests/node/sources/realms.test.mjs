// Sources, targets and signals that are not instances of this realm's classes: of a vm context (as of an iframe), and as jsdom makes them,
// with all that they are in fields that no thread can be sent.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { memoryStream, quantizerFor, tinyLlama } from '../scratch.mjs';

const path = join(tinyLlama, 'model.safetensors');
const bytes = new Uint8Array(readFileSync(path));
const context = vm.createContext({ bytes });
const impl = Symbol('impl');

/** As jsdom's: an instance of no class of Node, whose state no structured clone has. */
function wrapped(tag, inner, members) {
  const object = Object.create({ [Symbol.toStringTag]: tag });
  Object.defineProperty(object, impl, { value: inner });
  for (const name of members)
    Object.defineProperty(object, name, {
      get: () => (typeof inner[name] === 'function' ? (...args) => wrappedOrSame(inner[name](...args)) : inner[name]),
    });
  return object;
}
const blobMembers = ['size', 'type', 'slice', 'arrayBuffer', 'text', 'stream'];
const wrappedOrSame = (value) => (value instanceof Blob ? wrapped('Blob', value, blobMembers) : value);

const sources = {
  'a Uint8Array': () => vm.runInContext('Uint8Array.from(bytes)', context),
  'an ArrayBuffer': () => vm.runInContext('Uint8Array.from(bytes).buffer', context),
  'a Blob': () => wrapped('Blob', new Blob([bytes]), blobMembers),
  'a File': () => wrapped('File', new File([bytes], 'm.safetensors'), [...blobMembers, 'name']),
  'a list': () => vm.runInContext('[Uint8Array.from(bytes)]', context),
  'a URL': () => {
    const url = pathToFileURL(path);
    const other = Object.create({ [Symbol.toStringTag]: 'URL', toString: () => url.href });
    return Object.assign(other, { href: url.href, protocol: url.protocol });
  },
  'a Response': () =>
    wrapped('Response', new Response(bytes), ['ok', 'status', 'headers', 'body', 'bodyUsed', 'url', 'statusText']),
};

test('sources, with and without a worker', async (t) => {
  for (const threads of [0, 1]) {
    const quantizer = await quantizerFor(t, { threads });
    const expected = memoryStream();
    const own = await quantizer.open(bytes);
    await quantizer.quantizeModel(own, 'int8', { target: expected.stream });
    for (const [name, make] of Object.entries(sources)) {
      const model = await quantizer.open(make());
      const { stream, bytes: written } = memoryStream();
      await quantizer.quantizeModel(model, 'int8', { target: stream });
      assert.ok(Buffer.from(written()).equals(expected.bytes()), `${name}, ${threads} workers`);
      await model.close();
    }
  }
});

test('targets and signals', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await quantizer.open(bytes);
  const expected = memoryStream();
  await quantizer.quantizeModel(model, 'int8', { target: expected.stream });
  const { stream, bytes: written } = memoryStream();
  const target = wrapped('WritableStream', stream, ['locked', 'getWriter']);
  await quantizer.quantizeModel(model, 'int8', { target });
  assert.ok(Buffer.from(written()).equals(expected.bytes()));
  await assert.rejects(quantizer.quantizeModel(model, 'int8', { target }), { code: 'target-invalid' }); // closed

  const controller = new AbortController();
  const signal = wrapped('AbortSignal', controller.signal, [
    'aborted',
    'reason',
    'addEventListener',
    'removeEventListener',
  ]);
  const reason = new Error('enough');
  const onProgress = () => controller.abort(reason);
  const options = { target: memoryStream().stream, signal, onProgress };
  await assert.rejects(quantizer.quantizeModel(model, 'int8', options), reason);
  await assert.rejects(quantizer.quantizeModel(model, 'int8', { ...options, onProgress() {} }), reason);
});
