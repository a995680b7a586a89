// The same work done in other ways: interrupted and resumed, or in parts that are merged. Files and report have to be those of one whole run.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const journalName = 'wasmquant-run.json';

/** Whether an interrupted run of `target` would leave a complete file. */
function keepsFile(target) {
  const begin = `${basename(target)}.wasmquant-`;
  const partial = readdirSync(dirname(target)).find((name) => name.startsWith(begin) && name.endsWith('.partial'));
  const journal = partial && join(dirname(target), partial, journalName);
  return Boolean(journal) && existsSync(journal) && /"name"/.test(readFileSync(journal, 'utf8'));
}

/**
 * Stops a run into `target` as soon as it has a complete file, or lets it end if that comes first, and resumes it. `run(options)`: quantizes.
 * Resolves to the report of the second run, with `wasStopped`.
 */
export async function resumed(run, target) {
  const controller = new AbortController();
  const enough = new Error('a file is complete');
  let watch = setImmediate(function look() {
    if (keepsFile(target)) controller.abort(enough);
    else watch = setImmediate(look);
  });
  const first = await run({ target, resume: true, signal: controller.signal }).catch((error) => error);
  clearImmediate(watch);
  if (first === enough) return { report: await run({ target, resume: true }), wasStopped: true };
  if (first instanceof Error) throw first;
  return { report: first, wasStopped: false };
}

/** Runs both halves of the shards, the second first, and merges them. */
export async function inParts(run, merge, target) {
  for (const part of [2, 1]) await run({ target, shards: { part, of: 2 } });
  return { report: await merge(target) };
}

/** Texts of what differs: files of two folders, and what two reports say of the run. */
export function differences(what, [folder, report], [other, otherReport]) {
  const names = [...new Set([folder, other].flatMap(filesIn))];
  const bytes = (place, name) => (existsSync(join(place, name)) ? readFileSync(join(place, name)) : null);
  const unequal = names.filter((name) => {
    const [left, right] = [bytes(folder, name), bytes(other, name)];
    return !left || !right || !left.equals(right);
  });
  const said = unequal.map((name) => `${what}: ${name} is not that of a whole run`);
  for (const key of ['tensors', 'files', 'totals'])
    if (JSON.stringify(report[key]) !== JSON.stringify(otherReport[key]))
      said.push(`${what}: the report's ${key} are not those of a whole run`);
  return said;
}

/** Paths of all files below a folder, relative to it. */
export function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1));
}
