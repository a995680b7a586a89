// llama-perplexity: log-probabilities of a reference in a file, and the table of a model's divergence from it.
import { readFileSync } from 'node:fs';

/** The last row of the table. */
export const lastRow = 'Same top p';

/** Windows of `length` tokens, computed with as they are. `base`: the file of the reference. */
export const optionsOf = (base, length) => [
  ...['-c', String(length), '-b', String(length), '-t', '1', '-ctk', 'f32', '-ctv', 'f32', '-fa', 'off'],
  ...['--kl-divergence-base', base],
];

/** A number of the table: the first of its row, or the second, its error. */
export function printed(table, title, number = 1) {
  const line = table.split('\n').find((text) => text.startsWith(title));
  const found = line?.slice(line.indexOf(':')).match(/-?\d+\.\d+/g)?.[number - 1];
  if (found === undefined) throw new Error(`llama-perplexity prints no ${title}: ${table.trim().slice(-400)}`);
  return Number(found) / (title === lastRow ? 100 : 1);
}

const attempts = 6;

/** The table up to a row. The process ends before its log is written, and some runs lose the last lines, so it runs until that row is
 * there; it writes to a file, where they are lost less often than in a pipe. */
export function divergenceTable(environment, output, last, ...args) {
  const script = 'output=$1; shift; exec llama-perplexity "$@" --kl-divergence >"$output" 2>&1';
  for (let attempt = 0; attempt < attempts; ++attempt) {
    environment.tool('sh', '-c', script, 'sh', output, ...args);
    const table = readFileSync(output, 'utf8');
    if (
      table
        .split('\n')
        .slice(0, -1)
        .some((line) => line.startsWith(`${last}:`))
    )
      return table;
  }
  throw new Error(`llama-perplexity lost ${last} of its table ${attempts} times`);
}
