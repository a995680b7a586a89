// README and guides, against the table of runtimes (src/runtimes/runtimes.def).
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../../setup/command.mjs';
import { moduleOf } from '../cli/web_module.mjs';
import { quantizerFor } from '../scratch.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');
const codes = (cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text);

/** The runtimes whose titles stand in a text; of `transformers.js` not also `transformers`. */
function namedIn(text, runtimes) {
  const rows = Object.values(runtimes).toSorted((a, b) => b.title.length - a.title.length);
  return rows.filter(({ title }) => {
    const isNamed = text.includes(title);
    text = text.replaceAll(title, '');
    return isNamed;
  });
}

test("README's table: formats that the runtime reads, presets that exist", async (t) => {
  const { runtimes } = await moduleOf(t, 'present/runtimes/table.ts');
  const presets = (await quantizerFor(t)).presets().map(({ name }) => name);
  const rows = read('README.md')
    .split('\n')
    .filter((line) => line.includes('](web/docs/run/'))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  assert.equal(rows.length, readdirSync(join(root, 'web/docs/run')).length);
  for (const [, , where, preset, format] of rows) {
    const named = namedIn(where.replace(/\(.*\)/, ''), runtimes);
    assert.ok(named.length > 0, where);
    for (const { title, formats } of named)
      for (const name of codes(format)) assert.ok(formats.includes(name), `${title} ${name}`);
    for (const name of codes(preset)) assert.ok(presets.includes(name), name);
  }
});

test('the guide of a runtime installs it as the table says', async (t) => {
  const { runtimes } = await moduleOf(t, 'present/runtimes/table.ts');
  for (const file of readdirSync(join(root, 'web/docs/run'))) {
    const guide = read(`web/docs/run/${file}`);
    const [, title] = /^title: (.*)$/m.exec(guide);
    const named = namedIn(title, runtimes);
    assert.ok(named.length > 0, title);
    for (const { install } of named) assert.ok(guide.includes(install.split(' ').at(-1)), `${file}: ${install}`);
  }
});
