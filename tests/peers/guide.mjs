// Markdown of tests/peers/results.json: web/docs/peers.md, and the runtimes between two marks in web/docs/formats.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { cell, item, table, wrapped } from './markdown_table.mjs';

const peersFile = join(root, 'web/docs/peers.md');
const formatsFile = join(root, 'web/docs/formats.md');
const marks = ['<!-- of tests/peers/results.json: npm run test:peers writes it -->', '<!-- end -->'];

/** Items in the order in which they are met, as Map of key to list. */
const grouped = (items, keyOf) => {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
};

const count = (cases, outcomes) => cases.filter(({ outcome }) => outcomes.includes(outcome)).length;

/** passed, meant, refused, failed, versions and dates of a row; those of a runtime are those of its cases. */
export function summaryOf({ cases, ...row }) {
  if (!cases) return row;
  const distinct = (key) => [...new Set(cases.map((one) => one[key]))].sort().join('; ');
  const counts = { passed: count(cases, ['loads']), refused: count(cases, ['refused', 'differs']) };
  return {
    ...row,
    ...counts,
    meant: 0,
    failed: count(cases, ['failed']),
    versions: distinct('versions'),
    date: distinct('date'),
  };
}

/** "`awq`: uint4_wo_64 (tiny-llama, smollm2)", a line for each format, way and text of `cases`. */
function linesOf(cases) {
  const lines = grouped(cases, ({ format, way, text }) => JSON.stringify([format, way, text]));
  return [...lines.values()].map((found) => {
    const [{ format, way, text }] = found;
    // Presets of the same models share their brackets.
    const modelsOf = (preset) => [...new Set(found.filter((one) => one.preset === preset).map(({ model }) => model))];
    const presets = [...new Set(found.map(({ preset }) => preset))];
    const parts = [...grouped(presets, (preset) => modelsOf(preset).join(', '))];
    const list = parts.map(([models, names]) => `${names.join(', ')} (${models})`).join('; ');
    return `\`${format}\`${way ? `, ${way}` : ''}: ${list}${text ? `: “${text}”` : ''}`;
  });
}

/** The runtimes of formats.md: a heading each, and an item for each format and outcome. */
export function runtimesOf({ rows }) {
  return rows
    .filter(({ cases }) => cases)
    .flatMap((row) => {
      const { versions, date } = summaryOf(row);
      const ofOutcome = (outcome, said) =>
        linesOf(row.cases.filter((one) => one.outcome === outcome)).flatMap((text) => item(`${said} ${cell(text)}`));
      return [
        `#### ${versions}`,
        '',
        `\`npm run test:peers -- ${row.peer}\`, ${date}:`,
        '',
        ...ofOutcome('loads', 'loads'),
        ...ofOutcome('refused', 'does not load'),
        ...ofOutcome('differs', 'computes something else:'),
        ...ofOutcome('failed', '**fails**:'),
        '',
      ];
    })
    .slice(0, -1);
}

const shareText = (share) => (share === null || share === undefined ? '' : share === 0 ? '0' : share.toExponential(1));
const tokensText = (isEqual) => (isEqual === undefined ? '' : isEqual ? 'equal' : 'differ');

function sectionOf({ peer, what, note, cases, explained, random }, versions) {
  const origin = [versions, random && `\`${random}\``, note].filter(Boolean).join('. ');
  const title = [`## ${peer}: ${what}`, '', ...wrapped(origin)];
  if (!cases)
    return [...title, ...(explained.length > 0 ? ['', ...explained.flatMap((text) => item(cell(text)))] : []), ''];
  const hasProducts = cases.some(({ product }) => product !== undefined);
  const headers = [
    'format',
    'preset',
    'outcome',
    'difference',
    'bound',
    ...(hasProducts ? ['products'] : []),
    'tokens',
  ];
  const texts = [...new Set(cases.map(({ text }) => text).filter(Boolean))];
  const notes = texts.flatMap((text, i) => wrapped(cell(text), `${i + 1}. `));
  const lineOf = (one) => [
    one.format + (one.way ? `, ${one.way}` : ''),
    one.preset,
    one.outcome + (one.text ? ` (${texts.indexOf(one.text) + 1})` : ''),
    shareText(one.share),
    shareText(one.share === null ? null : one.bound),
    ...(hasProducts ? [shareText(one.product)] : []),
    tokensText(one.tokens),
  ];
  const models = grouped(cases, ({ model, dtype, date }) => `${model} in ${dtype}, ${date}`);
  const tables = [...models].flatMap(([model, found]) => ['', `${model}:`, '', ...table(headers, found.map(lineOf))]);
  return [...title, ...tables, ...(notes.length > 0 ? ['', ...notes] : []), ''];
}

/** web/docs/peers.md. */
export function peersOf({ rows }) {
  const summaries = rows.map(summaryOf);
  return `${[
    '---',
    '',
    'title: Compared with other tools',
    'group: Measurements',
    '',
    '---',
    '',
    '# Compared with other tools',
    '',
    '`npm run test:peers` writes this page and the runtimes in [Formats](formats.md#what-was-seen-to-load) from what the tools themselves',
    'answered. A run of one tool changes only its rows; the others keep their date.',
    '',
    'passed: the same. meant: differs for a reason that is listed. refused: one of the two refuses it for a reason that is listed.',
    '',
    ...[...grouped(summaries, ({ versions }) => versions)].flatMap(([versions, found]) => [
      `${versions}:`,
      '',
      ...table(
        ['what', 'passed', 'meant', 'refused', 'failed', 'date'],
        found.map((row) => [row.what, row.passed, row.meant, row.refused, row.failed, row.date]),
      ),
      '',
    ]),
    'Below, `difference` and `bound` are shares of the largest logit. `products` is the largest difference of a product of one layer with a single 1,',
    'as a share of that product: it shows a wrong scale where kernels that round inputs move the logits by more.',
    '',
    ...rows.flatMap((row, i) => sectionOf(row, summaries[i].versions)),
  ]
    .join('\n')
    .trimEnd()}\n`;
}

/** formats.md with the runtimes of `results`. */
export function formatsOf(markdown, results) {
  const [begin, end] = marks.map((mark) => markdown.indexOf(mark));
  if (begin < 0 || end < begin) throw new Error(`web/docs/formats.md has not the lines ${marks.join(' and ')}`);
  const before = markdown.slice(0, begin + marks[0].length);
  return `${before}\n\n${runtimesOf(results).join('\n')}\n\n${markdown.slice(end)}`;
}

/** What the two guides say, and what they must say: [{path, found, wanted}]. */
export function guidesOf(results) {
  const [peers, formats] = [peersFile, formatsFile].map((path) => readFileSync(path, { encoding: 'utf8', flag: 'a+' }));
  return [
    { path: peersFile, found: peers, wanted: peersOf(results) },
    { path: formatsFile, found: formats, wanted: formatsOf(formats, results) },
  ];
}

export function writeGuides(results) {
  for (const { path, wanted } of guidesOf(results)) writeFileSync(path, wanted);
}
