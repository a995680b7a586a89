// What came of `npm run test:peers`, kept in tests/peers/results.json: a row for each thing that was compared, and of runtimes an entry for each
// case. A run replaces what it ran; the rest keeps its own date and versions. The guides are made of it (guide.mjs).
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { writeGuides } from './guide.mjs';

const file = join(root, 'tests/peers/results.json');

/** {rows}: see `rowOf` and `caseOf`. */
export const recorded = () => JSON.parse(readFileSync(file, 'utf8'));

function outcomeOf({ isFailure, problem, error }) {
  if (isFailure) return 'failed';
  if (!problem) return 'loads';
  return error ? 'refused' : 'differs';
}

/** Two digits are enough to see a change. */
const shareOf = (number) => (Number.isFinite(number) ? Number(number.toPrecision(2)) : null);

/** A case of a runtime. `share` and `bound` are of the largest logit, `product` of a product of one layer; `text` is the runtime's, or what is wrong. */
function caseOf(cell, stamp) {
  const { name, format, preset, label, dtype, how, algorithm, refusal, problem, tokens, areTokensEqual } = cell;
  return {
    name,
    format,
    preset,
    model: label,
    dtype,
    way: [algorithm?.title, how].filter(Boolean).join(', ') || undefined,
    outcome: outcomeOf(cell),
    text: problem && (cell.isFailure ? problem.slice(0, 200) : refusal),
    share: shareOf(cell.share),
    bound: shareOf(cell.bound),
    product: Number.isFinite(cell.product) ? shareOf(cell.product) : undefined,
    tokens: tokens ? areTokensEqual : undefined,
    ...stamp,
  };
}

/** `failed` counts; the texts of failures are printed by the run. */
function rowOf({ peer, what, cells, passed, differing, refused, failures, explained, note }, stamp, cases) {
  if (cells) return { peer, what, note, cases: cells.map((cell) => caseOf(cell, stamp)) };
  const counts = { passed, meant: differing, refused, failed: failures.length };
  return { peer, what, note, random: cases, ...counts, explained: explained.lines(), ...stamp };
}

/** The cases of a run that left some out replace those of the same name, in their places. */
function withCases(former, row, isPart) {
  if (!isPart || !former?.cases) return row;
  const made = new Map(row.cases.map((one) => [one.name, one]));
  const kept = former.cases.map((one) => made.get(one.name) ?? one);
  const names = new Set(former.cases.map(({ name }) => name));
  return { ...row, cases: [...kept, ...row.cases.filter(({ name }) => !names.has(name))] };
}

/** `rows` of one peer over those that are kept. `isPart`: --only left out cases; `names`: peers, in the order of the table. */
export function merged(formerRows, rows, peer, { isPart, names }) {
  const ofPeer = (one) => formerRows.filter((row) => row.peer === one);
  const sameAs = (row) => ofPeer(peer).find(({ what }) => what === row.what);
  const made = rows
    .filter((row) => !isPart || row.cases?.length !== 0)
    .map((row) => withCases(sameAs(row), row, isPart));
  const left = isPart ? ofPeer(peer).filter((row) => !made.some(({ what }) => what === row.what)) : [];
  return names.flatMap((name) => (name === peer ? [...made, ...left] : ofPeer(name)));
}

/** Keeps the rows of one peer, and makes the guides anew. `versions`: text of its distributions; `options`: those of the run. */
export function record(peer, rows, { versions, names, options }) {
  const stamp = { versions, date: new Date().toISOString().slice(0, 10) };
  const random = `--seed ${options.seed} --count ${options.count}`;
  const made = rows.map((row) => rowOf({ ...row, peer }, stamp, random));
  const all = merged(recorded().rows, made, peer, { isPart: options.only !== undefined, names });
  const results = JSON.parse(JSON.stringify({ rows: all }));
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`);
  writeGuides(results);
}
