// The licences of others whose work is in the package, the module or the page. What the scripts import is found in their
// imports and, from there on, in the lock file; cmake/licences has the texts of what is compiled into the module.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.mjs';

const licenceFile = /^(licen[cs]e|copying|notice)(\.|-|$)/i;

/** Libraries in wasmquant.wasm and engine.js, by the name of their file in cmake/licences. */
export const compiledNames = readdirSync(join(root, 'cmake/licences'))
  .map((name) => name.replace(/\.txt$/, ''))
  .sort();

const sourcesBelow = (folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((name) => /\.(ts|tsx)$/.test(name))
    .map((name) => readFileSync(join(root, folder, name), 'utf8'));

/** Packages that the scripts below a folder import. */
function importedIn(folder) {
  const found = new Set();
  for (const source of sourcesBelow(folder))
    for (const [, specifier] of source.matchAll(/(?:from|import\(|import)\s*['"]([^'".][^'"]*)['"]/g)) {
      const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
      if (!name.startsWith('node:') && existsSync(join(root, 'node_modules', name))) found.add(name);
    }
  return found;
}

/** These and all that they depend on, by the lock file: paths such as `node_modules/commander`. */
function withDependencies(names) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const found = new Set();
  const add = (name, from) => {
    // As Node resolves: in the package's own node_modules, else in that of a folder above.
    let at = from;
    while (at !== '' && !packages[`${at}/node_modules/${name}`])
      at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')));
    const path = at === '' ? `node_modules/${name}` : `${at}/node_modules/${name}`;
    if (found.has(path)) return;
    if (!packages[path]) throw new Error(`${name} is not in package-lock.json`);
    found.add(path);
    for (const each of Object.keys(packages[path].dependencies ?? {})) add(each, path);
  };
  for (const name of names) add(name, '');
  return [...found].sort();
}

/** Heading and texts of an installed package. Throws if it comes without a licence text. */
function noticeOf(path) {
  const folder = join(root, path);
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const texts = readdirSync(folder).filter((file) => licenceFile.test(file));
  const stored = join(root, 'web/licences', `${name.replace('/', '-')}.txt`);
  if (texts.length === 0 && !existsSync(stored))
    throw new Error(`${name} ${version} (${license}) comes without a licence text; add ${stored}`);
  const heading = `${name} ${version} (${license})`;
  if (texts.length > 0)
    return [
      heading,
      texts
        .map((file) => readFileSync(join(folder, file), 'utf8'))
        .join('\n')
        .trim(),
    ];
  const origin = `The package comes without a licence text. Its package.json names the licence: ${license}. What follows is the
text of that licence, with the copyright holder that the package's files name.`;
  return [heading, `${origin}\n\n${readFileSync(stored, 'utf8').trim()}`];
}

const compiledNotices = () =>
  compiledNames.map((name) => [name, readFileSync(join(root, 'cmake/licences', `${name}.txt`), 'utf8').trim()]);

const written = (notices) => {
  const line = '='.repeat(80);
  const head = 'wasmquant contains the work of others. Their licences, one after another:';
  return `${head}\n\n${notices.map(([name, text]) => `${line}\n${name}\n${line}\n\n${text}\n`).join('\n')}`;
};

/** The notices of what the scripts in these folders import, and of the module. */
export function noticesFor(...folders) {
  const names = new Set(folders.flatMap((folder) => [...importedIn(folder)]));
  return written([...compiledNotices(), ...withDependencies(names).map(noticeOf)]);
}
