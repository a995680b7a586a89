// What transformers converts while it loads, against the rows of src/runtimes/transformers/conversions.def, which this writes.
//   node tests/families/conversions.mjs [--release VERSION|newest]   the rows that a release has and ours lack, and the other way round;
//                                                                    exit code 1 when there are any. Default: the pinned release
//   --write: writes the file
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { main, root } from '../setup/command.mjs';
import { pythonOf } from './family_loader.mjs';

const path = 'src/runtimes/transformers/conversions.def';
const [open, close] = [
  '// clang-format off\n',
  '// clang-format on\n#undef WASMQUANT_CONVERSION\n#undef WASMQUANT_STACKED_EXPERTS\n',
];

const lineOf = ({ kind, types, sources, targets }) =>
  `WASMQUANT_CONVERSION(${kind}, "${types}", "${sources}", "${targets}")`;
const stackedLineOf = (types) => `WASMQUANT_STACKED_EXPERTS("${types}")`;

/** `{ version, lines }` of a release: a line a row. */
async function releaseRows(python) {
  const child = python.run('conversions.py', [], ['ignore', 'pipe', 'inherit']);
  let text = '';
  for await (const part of child.stdout.setEncoding('utf8')) text += part;
  const { version, rows, stacked } = JSON.parse(text.slice(text.indexOf('{"version"')));
  return { version, lines: [...rows.map(lineOf), stackedLineOf(stacked)] };
}

/** A row is one line here and may be several in the file. */
function fileRows() {
  const text = readFileSync(join(root, path), 'utf8');
  const [, stacked] = text.match(/^WASMQUANT_STACKED_EXPERTS\("(.*)"\)$/m);
  const rows = [...text.matchAll(/^WASMQUANT_CONVERSION\((\w+),((?:[^()]|\n)*)\)$/gm)].map(([, kind, rest]) => {
    const words = [...rest.matchAll(/((?:"[^"]*"\s*)+)/g)].map(([literal]) =>
      literal.replaceAll(/"\s*"|"/g, '').trim(),
    );
    const [types, sources, targets] = words;
    return lineOf({ kind, types, sources, targets });
  });
  return [...rows, stackedLineOf(stacked)];
}

function write({ version, lines }) {
  const text = readFileSync(join(root, path), 'utf8');
  const head = text.slice(0, text.indexOf(open)).replace(/transformers \d[\d.]*\d/, `transformers ${version}`);
  writeFileSync(join(root, path), `${head}${open}${lines.join('\n')}\n${close}`);
}

/** What differs between conversions.def and the release of `python`, as lines. */
export async function conversionDifferences(python) {
  const { lines } = await releaseRows(python);
  const ours = fileRows();
  return [
    ...lines.filter((line) => !ours.includes(line)).map((line) => `conversions.def lacks ${line}`),
    ...ours.filter((line) => !lines.includes(line)).map((line) => `the release has no ${line}`),
  ];
}

if (process.argv[1] === import.meta.filename)
  main(async (args) => {
    const { values } = parseArgs({ args, options: { release: { type: 'string' }, write: { type: 'boolean' } } });
    const python = pythonOf('pinned', values);
    try {
      if (values.write) write(await releaseRows(python));
      const differing = await conversionDifferences(python);
      process.stdout.write(
        `${python.title}: ${differing.length} rows differ\n${differing.map((line) => `${line}\n`).join('')}`,
      );
      return differing.length > 0 ? 1 : 0;
    } finally {
      python.close();
    }
  });
