// The licence of every library that is in the package, the module or the page is delivered with it. What is there is
// taken from the bundles themselves and from the includes of the sources, not from what made the notices.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '../../..');
const text = (path) => readFileSync(join(root, path), 'utf8');

/** Heading to text. */
function noticesIn(path) {
  const parts = text(path)
    .split(/^={80}$/m)
    .slice(1);
  const found = new Map();
  for (let i = 0; i < parts.length; i += 2) found.set(parts[i].trim().split(' ')[0], parts[i + 1].trim());
  return found;
}

/** Packages whose files are among these. */
const packagesOf = (ids) =>
  new Set(
    ids.flatMap((id) => {
      const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id) ?? [];
      return name ? [name] : [];
    }),
  );

function checkTexts(notices, names) {
  for (const name of names) {
    assert.ok(notices.has(name), `${name} has no notice`);
    assert.match(notices.get(name), /copyright/i, name);
    assert.ok(notices.get(name).length > 400, `${name}: ${notices.get(name)}`);
  }
}

/** Packages that a bundle of this entry reads. */
async function bundledFrom(entry, options) {
  const ids = [];
  const load = (id) => (/\.(css|svg|png)(\?|$)/.test(id) ? { code: 'export {};', moduleType: 'js' } : null);
  const plugins = [{ name: 'seen', load, moduleParsed: ({ id }) => void ids.push(id) }];
  const bundle = await rolldown({ input: join(root, entry), logLevel: 'silent', plugins, ...options });
  await bundle.generate({ format: 'esm' });
  await bundle.close();
  return packagesOf(ids);
}

test('the command line: every package in it', async () => {
  const options = { platform: 'node', external: /^(\.\.\/)+lib\// };
  const bundled = [await bundledFrom('web/cli/main.ts', options), await bundledFrom('web/cli/thread.ts', options)];
  const packages = new Set(bundled.flatMap((names) => [...names]));
  assert.ok(packages.has('commander'), [...packages].join(', '));
  checkTexts(noticesIn('dist/THIRD-PARTY-NOTICES.txt'), packages);
});

test('the page: every package in it', async () => {
  const packages = await bundledFrom('web/demo/main.tsx', { platform: 'browser', external: /^wasmquant(\/|$)/ });
  assert.ok(packages.has('preact'), [...packages].join(', '));
  checkTexts(noticesIn('dist/demo/THIRD-PARTY-NOTICES.txt'), packages);
});

test('the module: every library whose headers the sources include, and what Emscripten links', () => {
  const included = new Set();
  for (const folder of ['src', 'bindings'])
    for (const name of readdirSync(join(root, folder), { recursive: true }).filter((file) =>
      /\.(cpp|h|def)$/.test(file),
    ))
      for (const [, library] of text(join(folder, name)).matchAll(/^#include [<"]([a-z0-9_]+)\/[^>"]+[>"]/gm))
        if (!existsSync(join(root, 'src', library)) && !existsSync(join(root, 'bindings', library)))
          included.add(library);
  assert.ok(included.has('xsimd') && included.has('rapidjson'), [...included].join(', '));
  const linked = ['emscripten', 'llvm', 'musl'];
  for (const path of ['dist/THIRD-PARTY-NOTICES.txt', 'dist/demo/THIRD-PARTY-NOTICES.txt'])
    checkTexts(noticesIn(path), [...included, ...linked]);
});
