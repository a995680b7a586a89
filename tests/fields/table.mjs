// The table of fields as Markdown: web/docs/fields.md.
import { documents } from './documents.mjs';
import { dialects } from './schema_fields.mjs';

const outcomes = ['applied', 'refused', 'remark'];
const titles = {
  quark: 'AMD Quark',
  brevitas: 'Quark’s Brevitas extension',
  aihwkit: 'IBM aihwkit',
  'compressed-tensors': 'compressed-tensors',
  gptq: 'GPTQ',
  awq: 'AWQ',
  fp8: 'fp8',
  gguf: 'GGUF recipes',
};

/** Fields that say what a file is, and nothing about quantizing. */
export const labels = ['$schema', 'dialect', 'quant_method'];

const head = `---

title: Fields of configs
group: Reference

---

# Fields of configs

What each field of each dialect does here. The table is made by trying: \`npm run fields\` sets one field at a time, to values other than its standard one, in
configs that have a place for it, and compares the result with the one without it. Nothing is read and dropped.

- **applied**: the plan, the bytes or the config block of the output changed.
- **refused**: an error names the field.
- **remark**: a warning or a note names the field. Its code is given: \`no-effect\` (says how another program runs or made a file), \`not-applied\`,
  \`key-ignored\` (next to the other keys of its spec) …

A field may be applied with one value and refused with another. \`$schema\` is for editors; \`dialect\` and \`quant_method\` choose the dialect.
`;

/** Text that Markdown does not read as its own. */
const cell = (text) => text.replaceAll('|', '\\|');
const code = (value) => `\`${JSON.stringify(value)}\``;

/** "applied, refused" of a row. */
function summary(row) {
  if (!row) return '';
  const parts = outcomes.filter((name) => row[name].length > 0);
  const codes = [...new Set(row.remark.map((item) => item.code))];
  return parts
    .map((name) => (name === 'remark' ? `remark (${codes.map((text) => `\`${text}\``).join(', ')})` : name))
    .join(', ');
}

function documentOf({ title, rows }, table) {
  const lines = rows.map(([field, standard, { dialect, path }, note]) => {
    const row = table[dialect].find((each) => each.path === path);
    if (!row) throw new Error(`${dialect} has no field ${path}`);
    return `| \`${field}\` | ${cell(standard)} | ${summary(row)} | ${cell(note)} |`;
  });
  return `### ${title}\n\n| field | documented default | here | |\n| --- | --- | --- | --- |\n${lines.join('\n')}\n`;
}

/** The most values of a kind that a row shows, and the most characters of them all. */
const mostShown = 4;
const rowWidth = 140;
const longestValue = 80;

/** Of `values` those that fit, at least one. */
function fitting(values, width) {
  let count = Math.min(1, values.length);
  while (count < Math.min(mostShown, values.length) && values.slice(0, count + 1).join(' ').length <= width) ++count;
  return values.slice(0, count);
}

function tableOf(dialect, rows) {
  const lines = rows
    .filter(({ path }) => !labels.includes(path))
    .map((row) => {
      const cells = outcomes.map((name) => {
        const items = row[name].filter(({ value }) => value !== undefined);
        if (row[name].length > 0 && items.length === 0) return name === 'applied' ? 'yes' : `\`${row[name][0].code}\``;
        const filled = outcomes.filter((other) => row[other].length > 0).length;
        const values = items.map(({ value }) => code(value));
        if (values[0]?.length > longestValue) values[0] = `${values[0].slice(0, longestValue)}…\``;
        const shown = fitting(values, (rowWidth - row.path.length) / filled - 15);
        const more = values.length > shown.length ? ' …' : '';
        const codes = name === 'remark' ? [...new Set(items.map((item) => item.code))].join(', ') : '';
        return cell(shown.join(' ') + more + (codes && ` (${codes})`));
      });
      return `| \`${row.path}\` | ${cells.join(' | ')} |`;
    });
  return `### ${titles[dialect]}\n\n| field | applied | refused | remark |\n| --- | --- | --- | --- |\n${lines.join('\n')}\n`;
}

/** The guide, of the table of probeAll(). */
export function guideOf(table) {
  const parts = [
    head,
    '## The tools’ own documents, line by line\n',
    ...documents.map((document) => documentOf(document, table)),
    '## Every field\n',
    ...dialects.map((dialect) => tableOf(dialect, table[dialect])),
  ];
  return parts.join('\n');
}
