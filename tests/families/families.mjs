// npm run test:families: tiny checkpoints of many model families, made here by transformers, quantized by the command line and loaded by
// transformers with the class that their config.json names. A line a family and a line a set of rules, with two marks for each preset, of the
// compressed-tensors folder and of the fake-quantized one:
//   =  the outputs are those of the source carrying the dequantized weights (relative difference at most 1e-5), no key missing or unexpected
//   -  loads, and nothing is quantized, for a reason that is listed         r  refused, because transformers cannot load such a file
//   W  wrong values or keys                                                 F  does not load, or was not written
// First the share of large mixtures of experts that is quantized (coverage.mjs), conversions of the release that conversions.def lacks
// (conversions.mjs), and classes that read weights as plain_weights.def does not say (plain_weights.py). Exit code 1 for any W or F, for too little
// coverage, for such conversions and classes, and when a smaller share of the cells is right than cases.mjs says.
//   --family NAME (repeatable; those of rare_families.py, too, and any-TYPE for any other model type: any_type.py;
//     with -bf16 or -f16 behind the name, weights of 16 bits)   --preset NAME (repeatable)
//   --part 0/3|date/3: every third family   --keep: leave the checkpoints, say where
//   --unknown: 45 model types that no table here makes (unknown_types.mjs)   --dtype bf16|f16: weights of 16 bits, in every family
//   --mixtures: instead, the share that is quantized of every mixture of experts at the size of its configuration (mixture_shapes.py)
//   --format compressed-tensors|fake-quantized: one of the two folders
//   --loader pinned|debian: the releases of transformers and compressed-tensors that tests/peers/transformers pins (default), or Debian's
//   --release VERSION|newest: another release of transformers   --args=TEXT: more arguments for `wasmquant quantize`
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { buildAll } from '../setup/build.mjs';
import { main } from '../setup/command.mjs';
import { leastShare, notInBfloat16, notInFloat16, presets, presetsOf, rules } from './cases.mjs';
import { formats, runCase } from './cell.mjs';
import { conversionDifferences } from './conversions.mjs';
import { checkCoverage, checkMixtures } from './coverage.mjs';
import { FamilyLoader, pythonOf } from './family_loader.mjs';
import { inPart, parsePart } from './part.mjs';
import { Table } from './table.mjs';
import { unknownTypes } from './unknown_types.mjs';

const options = {
  family: { type: 'string', multiple: true },
  preset: { type: 'string', multiple: true },
  part: { type: 'string' },
  unknown: { type: 'boolean' },
  mixtures: { type: 'boolean' },
  dtype: { type: 'string' },
  format: { type: 'string' },
  keep: { type: 'boolean' },
  loader: { type: 'string', default: 'pinned' },
  release: { type: 'string' },
  args: { type: 'string', default: '' },
};

/** Lines that make_families.py prints; transformers' own, in brackets, are dropped. Throws when it fails. */
async function makeFamilies(python, ...args) {
  const child = python.run('make_families.py', args, ['ignore', 'pipe', 'inherit']);
  const lines = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('[')) lines.push(line);
  });
  const [code] = await once(child, 'close');
  const notMade = lines.filter((line) => line.includes('NOT MADE'));
  if (code !== 0) throw new Error(`make_families.py ended with exit code ${code}\n${notMade.join('\n')}`);
  return lines;
}

const any = 'any-';

/** Names of the families of a run, with the dtype of their weights behind each. */
async function choose(python, { dtype, ...wanted }) {
  const names = await chooseFamilies(python, wanted);
  if (dtype === undefined) return names;
  if (!['bf16', 'f16'].includes(dtype)) throw new Error(`no dtype is called ${dtype}; there are bf16 and f16`);
  const others = dtype === 'bf16' ? notInBfloat16 : notInFloat16;
  const chosen = names.filter((name) => !others.includes(name));
  return [...new Set(chosen.map((name) => (/-b?f16$/.test(name) ? name : `${name}-${dtype}`)))];
}

/** What mixture_shapes.py prints, a line at a time. */
async function* shapesOfMixtures(python, types) {
  const child = python.run('mixture_shapes.py', types, ['ignore', 'pipe', 'inherit']);
  const closed = once(child, 'close');
  for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line);
  const [code] = await closed;
  if (code !== 0) throw new Error(`mixture_shapes.py ended with exit code ${code}`);
}

/** Model types whose classes read weights otherwise than plain_weights.def says, as lines; of a part of the types or of all. */
async function plainWeightDifferences(python, part) {
  const args = part === undefined ? [] : ['--part', ...parsePart(part).map(String)];
  const child = python.run('plain_weights.py', args, ['ignore', 'pipe', 'inherit']);
  const closed = once(child, 'close');
  const lines = [];
  for await (const line of createInterface({ input: child.stdout })) lines.push(line);
  const [code] = await closed;
  if (code !== Math.min(lines.length, 1)) throw new Error(`plain_weights.py ended with exit code ${code}`);
  return lines.map((line) => `plain_weights.def: ${line}`);
}

/** The families of a run: named, of unknown types, a part of them, or all. */
async function chooseFamilies(python, { family, part, unknown: areUnknown }) {
  if (areUnknown) return unknownTypes.map((type) => any + type);
  const known = await makeFamilies(python, '--list', ...(family ? ['--rare'] : []));
  const isKnown = (name) => known.includes(name) || name.startsWith(any) || known.includes(name.replace(/-b?f16$/, ''));
  const unknown = (family ?? []).filter((name) => !isKnown(name));
  if (unknown.length > 0) throw new Error(`no family is called ${unknown.join(', ')}; there are ${known.join(', ')}`);
  if (family) return family;
  if (part === undefined) return known;
  process.stdout.write(`part ${parsePart(part).join('/')} of the families\n`);
  return inPart(known, part);
}

/** Runs cases, two at a time between the command line and the loader; `done(case, outcome)` in their order. */
async function runAll(python, cases, families, work, done) {
  const loader = new FamilyLoader(python);
  const running = [];
  const finishFirst = async () => {
    const [item, outcome] = running.shift();
    done(item, await outcome);
  };
  try {
    for (const [i, item] of cases.entries()) {
      const folder = join(work, String(i));
      mkdirSync(folder);
      const outcome = runCase(loader, families, folder, item).finally(() => rmSync(folder, { recursive: true }));
      outcome.catch(() => {}); // thrown where it is awaited, in order
      running.push([item, outcome]);
      if (running.length >= 2) await finishFirst();
    }
    while (running.length > 0) await finishFirst();
  } finally {
    loader.close();
  }
}

/** The table of `families`, printed as it grows. */
async function tabulate(python, names, { chosen, more, written }, families, work) {
  const table = new Table();
  const cases = [
    ...names.flatMap((family) => presetsOf(family, chosen).map((preset) => ({ family, preset }))),
    ...rules.filter(({ family, preset }) => names.includes(family) && chosen.includes(preset)),
  ].map((item) => ({ ...item, more, written }));
  process.stdout.write(`${names.length} families × ${chosen.join(', ')}, then with rules\n`);
  let row = [];
  await runAll(python, cases, families, work, (item, outcome) => {
    row.push(table.add(item, outcome));
    if (!item.args && row.length < presetsOf(item.family, chosen).length) return;
    const title = item.args ? [item.family, item.preset, ...item.args].join(' ') : item.family;
    process.stdout.write(`${title.padEnd(26)} ${row.join('  ')}\n`);
    row = [];
  });
  process.stdout.write(`\n${table.summary()}\n`);
  return table;
}

main(async (args) => {
  const { values } = parseArgs({ args, options });
  buildAll();
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-families-'));
  const python = pythonOf(values.loader, values);
  try {
    process.stdout.write(`loader: ${python.title}\n`);
    if (values.mixtures) return (await checkMixtures(work, shapesOfMixtures(python, values.family ?? []))) > 0 ? 1 : 0;
    const isPart = values.family !== undefined || values.unknown;
    const uncovered = isPart ? 0 : checkCoverage(work);
    const outdated =
      isPart || values.loader !== 'pinned'
        ? []
        : [...(await conversionDifferences(python)), ...(await plainWeightDifferences(python, values.part))];
    process.stdout.write(outdated.map((line) => `${line}\n`).join(''));
    const names = await choose(python, values);
    const families = join(work, 'families');
    await makeFamilies(python, families, ...names);
    const more = values.args.split(' ').filter(Boolean);
    const written = values.format === undefined ? formats : [values.format];
    const table = await tabulate(python, names, { chosen: values.preset ?? presets, more, written }, families, work);
    const isLow = !isPart && table.share < leastShare;
    if (isLow) process.stdout.write(`fewer than ${100 * leastShare} % of the cells are right\n`);
    process.stdout.write(String(table));
    return uncovered + outdated.length + table.problems > 0 || isLow ? 1 : 0;
  } finally {
    python.close();
    if (values.keep) process.stdout.write(`checkpoints: ${work}\n`);
    else rmSync(work, { recursive: true, force: true });
  }
});
