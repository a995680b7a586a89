// Disposing a quantizer ends its runs, and resolves when they have cleaned up.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createQuantizer } from '../../../dist/node.js';
import { scratchFolder, tinyLlama } from '../scratch.mjs';

const calls = {
  quantizeModel: (quantizer, model, target) => quantizer.quantizeModel(model, 'int8', { target }),
  compare: (quantizer, model) => quantizer.compare(model, model),
  preview: (quantizer, model) => quantizer.preview(model, 'int8', ['model.layers.0.mlp.up_proj.weight']),
  evaluate: async (quantizer, model) =>
    quantizer.languageModel(model).evaluate({ tokens: { data: [1, 2, 3, 4], shape: [2, 2] } }),
};

for (const threads of [0, 2])
  for (const [name, call] of Object.entries(calls))
    test(`${name}, ${threads} workers: nothing keeps running after dispose, at any moment`, async (t) => {
      const folder = scratchFolder(t);
      for (const wait of [null, 0, 5, 20, 60]) {
        const quantizer = await createQuantizer({ threads });
        const model = await quantizer.open(tinyLlama);
        const target = join(folder, `after-${wait}`);
        let ended = null;
        const run = call(quantizer, model, target).then(
          () => {
            ended = 'done';
          },
          (error) => {
            ended = error.code;
          },
        );
        if (wait !== null) await new Promise((resolve) => setTimeout(resolve, wait));
        await quantizer[Symbol.asyncDispose]();
        await new Promise(setImmediate); // the handlers above
        assert.ok(ended === 'state-invalid' || ended === 'done', `${ended} after ${wait} ms`);
        const files = readdirSync(folder);
        await run;
        await new Promise((resolve) => setTimeout(resolve, 20));
        assert.deepEqual(readdirSync(folder), files);
        if (name === 'quantizeModel' && ended !== 'done')
          assert.deepEqual(
            files.filter((file) => file.includes(`after-${wait}`)),
            [],
          );
        await assert.rejects(call(quantizer, model, target), { code: 'state-invalid' });
      }
    });
