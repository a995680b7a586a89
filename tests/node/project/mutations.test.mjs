// The faults of `npm run test:mutations` fit the sources as they are, which a change elsewhere would break unseen until the next whole run.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { faults } from '../../mutations/faults.mjs';
import { root } from '../../setup/command.mjs';

test('every fault changes one place of a source, and what has to catch it is there', () => {
  for (const [name, [file, find, put, by]] of Object.entries(faults)) {
    assert.ok(existsSync(join(root, file)), `${name}: ${file} is not there`);
    assert.equal(readFileSync(join(root, file), 'utf8').split(find).length, 2, `${name}: ${file} has once: ${find}`);
    assert.notEqual(put, find, name);
    assert.ok(by === 'seams' || existsSync(join(root, by)), `${name}: ${by} is not there`);
  }
});
