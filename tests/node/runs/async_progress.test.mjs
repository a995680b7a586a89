// A progress function that is async and rejects ends its run, as one that throws does; nothing is written.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

for (const [kind, onProgress] of [
  ['rejects', async () => Promise.reject(new Error('no more'))],
  [
    'throws',
    () => {
      throw new Error('no more');
    },
  ],
]) {
  test(`onProgress that ${kind}`, async (t) => {
    const folder = scratchFolder(t);
    const quantizer = await quantizerFor(t);
    const model = await modelFor(t, quantizer, join(tinyLlama, 'model.safetensors'));
    await assert.rejects(
      quantizer.quantizeModel(model, 'int8', { target: join(folder, 'out'), onProgress }),
      /no more/,
    );
    assert.deepEqual(readdirSync(folder), []);
  });
}
