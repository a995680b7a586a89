// node tests/texts/check.mjs [FOLDER...]: the phrases of phrases.mjs in sources, help, page, Markdown and names of tests, and
// lines of Markdown over 160 columns or cells of more than a clause. Part of `npm run lint`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { filesBelow } from '../setup/source_files.mjs';
import { exceptions, phrases } from './phrases.mjs';

const kinds = /\.(cpp|h|def|ts|tsx|mjs|js|html|css|md|json)$/;
const mostColumns = 160;
/** Its cells are the names of cases, each a sentence of the tool's check. */
const peersTable = 'web/docs/peers.md';
/** Texts of these are checked where they are written. */
const generated = /^web\/lib\/generated\/|^web\/licences\/|^web\/docs\/(peers|fields)\.md$/;

function textFiles(folders) {
  const named = folders.length > 0 ? folders : ['src', 'bindings', 'web'];
  const files = named.flatMap((folder) => filesBelow(folder, kinds));
  if (folders.length === 0) files.push('README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'package.json');
  return files.filter((file) => !generated.test(file));
}

/** The text with string literals and comments that go on in the next line joined: every place keeps its offset. */
function joinedLines(text) {
  const blank = (match) => match.replace(/[^\n]/g, ' ');
  return text
    .replace(/"\s*\n\s*"|'\s*\+\s*\n\s*'|`\s*\+\s*\n\s*`/g, blank)
    .replace(/\n[ \t]*(?:\/\/\/?|\*(?!\/)|>|-(?= ))/g, blank);
}

function findingsOf(file, used) {
  const text = readFileSync(join(root, file), 'utf8');
  const lines = text.split('\n');
  const flat = joinedLines(text)
    .replace(/\s/g, ' ')
    .replace(/ {2,}/g, (run) => ` ${'\0'.repeat(run.length - 1)}`);
  // Runs of blanks count as one: what is left out is counted back for the line number.
  const kept = [];
  for (let i = 0; i < flat.length; ++i) if (flat[i] !== '\0') kept.push(i);
  const searched = flat.replaceAll('\0', '');
  const lineOf = (at) => text.slice(0, kept[at]).split('\n').length;
  const findings = [];
  for (const { pattern, instead, allowed } of phrases) {
    const free = allowed ? [...searched.matchAll(allowed)].map((m) => [m.index, m.index + m[0].length]) : [];
    for (const match of searched.matchAll(pattern)) {
      const end = match.index + match[0].length;
      if (free.some(([from, to]) => from <= match.index && end <= to)) continue;
      const line = lineOf(match.index);
      const exception = exceptions.find((e) => e.file === file && lines[line - 1].includes(e.text));
      if (exception) used.add(exception);
      else findings.push({ file, line, phrase: match[0], instead, text: lines[line - 1].trim() });
    }
  }
  return findings;
}

/** Names of tests, which are read when one fails. */
function testNames() {
  return ['tests/node', 'tests/browser', 'tests/native']
    .flatMap((folder) => filesBelow(folder, /\.(test\.mjs|cpp)$/))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const names = text.matchAll(/^\s*(?:test\(|TEST_CASE\()\s*(["'`])((?:(?!\1).)*)\1/gm);
      return [...names].map((match) => ({ file, line: text.slice(0, match.index).split('\n').length, text: match[2] }));
    });
}

function findingsOfNames() {
  return testNames().flatMap(({ file, line, text }) =>
    phrases.flatMap(({ pattern, instead, allowed }) => {
      const rest = allowed ? text.replace(allowed, '') : text;
      return [...rest.matchAll(pattern)].map(([phrase]) => ({ file, line, phrase, instead, text }));
    }),
  );
}

/** Lines of Markdown that are too long to read as text; code keeps its lines. */
function longLines(file) {
  let isCode = false;
  return readFileSync(join(root, file), 'utf8')
    .split('\n')
    .flatMap((text, i) => {
      if (text.startsWith('```')) isCode = !isCode;
      if (isCode || text.length <= mostColumns) return [];
      return [`${file}:${i + 1}: ${text.length} columns; wrap the line, or make a list of the table`];
    });
}

/** Cells of tables with more than a clause: they need a list, or a line of text below the table. */
function fullCells(file) {
  let isCode = false;
  return readFileSync(join(root, file), 'utf8')
    .split('\n')
    .flatMap((text, i) => {
      if (text.startsWith('```')) isCode = !isCode;
      if (isCode || !text.startsWith('|')) return [];
      const cells = text.replace(/`[^`]*`/g, 'code').split(/(?<!\\)\|/);
      return cells
        .filter((cell) => /;|[.!?] +\S/.test(cell))
        .map((cell) => `${file}:${i + 1}: a cell has more than a clause: ${cell.trim()}`);
    });
}

const folders = process.argv.slice(2);
const used = new Set();
const findings = [
  ...textFiles(folders).flatMap((file) => findingsOf(file, used)),
  ...(folders.length > 0 ? [] : findingsOfNames()),
];
for (const { file, line, phrase, instead, text } of findings)
  process.stdout.write(`${file}:${line}: "${phrase}": write ${instead}\n    ${text}\n`);
const pages = (folders.length > 0 ? [] : [...textFiles([]), ...filesBelow('web/docs', /\.md$/)]).filter(
  (file, i, all) => file.endsWith('.md') && all.indexOf(file) === i,
);
const long = pages.flatMap(longLines);
const full = pages.filter((file) => file !== peersTable).flatMap(fullCells);
for (const text of [...long, ...full]) process.stdout.write(`${text}\n`);
const unused = folders.length > 0 ? [] : exceptions.filter((exception) => !used.has(exception));
for (const { file, text } of unused) process.stdout.write(`${file}: nothing needs the exception for "${text}"\n`);
process.stdout.write(
  `texts: ${findings.length} phrases, ${unused.length} exceptions without use, ${long.length} long lines of Markdown, ${full.length} full cells\n`,
);
process.exitCode = findings.length + unused.length + long.length + full.length > 0 ? 1 : 0;
