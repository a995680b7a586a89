// The map of errors: layers in the order of the model, colours that agree with the words beside them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleOf } from '../cli/web_module.mjs';

test('layers stand in the order of their numbers, regardless of their order in the file', async (t) => {
  const { blocksOf } = await moduleOf(t, 'demo/result/error-blocks.ts');
  const names = ['model.embed.weight', ...Array.from({ length: 30 }, (_, i) => `model.layers.${i}.mlp.weight`).sort()];
  const blocks = blocksOf(names.map((name) => ({ tensor: { name, bytesAfter: 1 }, error: 0.01 })));
  assert.deepEqual(
    blocks.map(({ title }) => title),
    [...Array.from({ length: 30 }, (_, i) => `layer ${i}`), 'others'],
  );
});

test('an error that is called good is drawn in the colour of good ones, and worse errors never in a better colour', async (t) => {
  const { shareOf } = await moduleOf(t, 'demo/result/error-blocks.ts');
  const { limits, wordOf } = await moduleOf(t, 'demo/report/errors.ts');
  for (const kind of Object.keys(limits)) {
    let last = shareOf(kind, 0);
    assert.equal(last, 0);
    for (let error = 1e-4; error < 1; error *= 1.05) {
      const share = shareOf(kind, error);
      assert.ok(share >= last);
      last = share;
      if (wordOf(kind, error) === 'good') assert.ok(share <= 0.2, `${error}: ${share}`);
      if (wordOf(kind, error) === 'bad') assert.equal(share, 1);
    }
  }
});
