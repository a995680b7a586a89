// The guides and the API reference as a site with search: dist/demo/docs, next to the page. TypeDoc makes it from web/docs and the
// docstrings of the library's public types; its versions are those of web/docs/site/package-lock.json.
//   node tests/docs/site.mjs      or, with everything else, npm run docs
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CommandFailed, main, needs, root, say } from '../setup/command.mjs';
import { checkSite } from './site_check.mjs';

const source = join(root, 'web/docs/site');
const peers = join(root, '.peers-docs');
const siteFolder = join(root, 'dist/demo/docs');

/** Installs what the lock file names, when the last installation was of another one. */
function install() {
  const files = ['package.json', 'package-lock.json'];
  const isSame = (name) =>
    existsSync(join(peers, name)) && readFileSync(join(peers, name)).equals(readFileSync(join(source, name)));
  if (files.every(isSame) && existsSync(join(peers, 'node_modules/typedoc'))) return;
  say('installing TypeDoc into .peers-docs');
  mkdirSync(peers, { recursive: true });
  for (const name of files) copyFileSync(join(source, name), join(peers, name));
  const options = ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error'];
  const { status } = spawnSync('npm', options, { cwd: peers, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw needs('npm cannot install what web/docs/site/package-lock.json names');
}

/** Every guide has to be in the navigation: the lists of web/docs/site/typedoc.json. */
function requireAllGuides() {
  const { projectDocuments, readme } = JSON.parse(readFileSync(join(source, 'typedoc.json'), 'utf8'));
  const listed = new Set([readme, ...projectDocuments].map((name) => basename(name)));
  const guides = readdirSync(join(root, 'web/docs'), { recursive: true }).filter((name) => name.endsWith('.md'));
  const missing = guides.filter((name) => !listed.has(basename(name)));
  if (missing.length > 0) throw new Error(`web/docs/site/typedoc.json does not list ${missing.join(', ')}`);
}

/** The page links to the guides that stand next to it (web/demo/app/links.ts). */
function linkFromPage() {
  const path = join(siteFolder, '../index.html');
  const html = readFileSync(path, 'utf8');
  if (html.includes('name="guides"')) return;
  writeFileSync(
    path,
    html.replace('<title>', () => '<meta name="guides" content="./docs/" />\n    <title>'),
  );
}

/** Writes dist/demo/docs, where a warning is an error, and looks at it in a browser. Resolves to the number of pages. */
export async function buildSite() {
  requireAllGuides();
  install();
  const args = ['--options', join(source, 'typedoc.json'), '--out', siteFolder];
  const program = join(peers, 'node_modules/.bin/typedoc');
  const { status } = spawnSync(program, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new CommandFailed('typedoc', status ?? 1);
  linkFromPage();
  await checkSite(siteFolder);
  return readdirSync(siteFolder, { recursive: true }).filter((name) => name.endsWith('.html')).length;
}

if (process.argv[1] === import.meta.filename)
  main(async () => void process.stdout.write(`${await buildSite()} pages in dist/demo/docs\n`));
