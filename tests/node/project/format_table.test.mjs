// The table of presets, formats and runtimes in the guide.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatTable, withTable } from '../../docs/format_table.mjs';
import { root } from '../../setup/command.mjs';
import { quantizerFor } from '../scratch.mjs';

test('web/docs/formats.md has the current table: node tests/docs/format_table.mjs', async (t) => {
  const guide = readFileSync(join(root, 'web/docs/formats.md'), 'utf8');
  assert.equal(guide, withTable(guide, await formatTable(await quantizerFor(t))));
});
