// Every file of the hostile corpus through the whole library: the error, or the tensors, that expected.json says.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { files, quantizerFor } from '../scratch.mjs';

const cases = ['hostile', 'hostile_numpy'].flatMap((name) => {
  const folder = join(files, name);
  return JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')).map((expected) => ({ folder, ...expected }));
});

test(`${cases.length} hostile files`, async (t) => {
  const quantizer = await quantizerFor(t);
  for (const { folder, ...expected } of cases) {
    await t.test(`${expected.file}: ${expected.why}`, async () => {
      const opening = quantizer.open(join(folder, expected.file));
      if (expected.ok) {
        const model = await opening;
        assert.deepEqual(
          model.tensors.map(({ name }) => name).sort(),
          [...(expected.opened ?? expected.tensors), ...(expected.unmapped ?? [])].sort(),
        );
        assert.deepEqual(
          model.diagnostics.map(({ where }) => where),
          expected.unmapped ?? [],
        );
        await model.close();
        return;
      }
      const error = await opening.then(
        () => assert.fail('was opened'),
        (reason) => reason,
      );
      if (expected.missing_file) {
        assert.equal(error.code, 'source-invalid');
        assert.equal(error.where, expected.missing_file);
        return;
      }
      assert.equal(error.code, expected.code, error.message);
      assert.ok(error.detail.includes(expected.message_contains ?? ''), error.message);
      assert.ok((error.where ?? '').includes(expected.where_contains ?? ''), `where: ${error.where}`);
    });
  }
  assert.equal(quantizer.liveObjects, 0, 'nothing is left behind');
});
