// npm run test:families: tiny checkpoints of many model families, made here by transformers, quantized by the command line and loaded by
// transformers with the class that their config.json names. A line a family and a set of rules, with a mark for each preset, first of the
// compressed-tensors folder, then of the fake-quantized one:
//   =  the outputs are those of the source carrying the dequantized weights (relative difference at most 1e-5), no key missing or unexpected
//   -  loads, and nothing is quantized, for a reason that is listed         r  refused, because transformers cannot load such a file
//   W  wrong values or keys                                                 F  does not load, or was not written
// Exit code 1 for any W or F, and when fewer cells are right than the floor in cases.mjs.
//   --family NAME (repeatable)   --preset NAME (repeatable)   --third 0|1|2|date: every third family   --keep: leave the checkpoints, say where

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { buildAll } from '../setup/build.mjs';
import { CommandFailed, main, root } from '../setup/command.mjs';
import { floor, presets, rules } from './cases.mjs';
import { runCase } from './cell.mjs';
import { FamilyLoader, python } from './family_loader.mjs';

const marks = { right: '=', left: '-', refused: 'r', wrong: 'W', failed: 'F' };
const cannotBeMadeHere = 3;
const millisecondsADay = 86_400_000;

/** Lines that a Python script of this folder prints; the lines of transformers' own, in brackets, are dropped. */
async function linesOf(script, ...args) {
  const child = python(script, args, ['ignore', 'pipe', 'inherit']);
  const lines = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('[')) lines.push(line);
  });
  const [code] = await once(child, 'close');
  return { code, lines };
}

/** The families of a run: named, or every third of them, or all. */
async function choose(options) {
  const { lines: known } = await linesOf('make_families.py', '--list');
  const unknown = (options.family ?? []).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`no family is called ${unknown.join(', ')}; there are ${known.join(', ')}`);
  if (options.family) return options.family;
  if (options.third === undefined) return known;
  const third = options.third === 'date' ? Math.floor(Date.now() / millisecondsADay) % 3 : Number(options.third);
  process.stdout.write(`third ${third} of the families\n`);
  return known.filter((_, i) => i % 3 === third);
}

/** Runs cases with a few at a time between the command line and the loader; `done(case, outcome)` in their order. */
async function runAll(cases, families, work, done) {
  const loader = new FamilyLoader();
  const running = [];
  try {
    for (const [i, item] of cases.entries()) {
      const folder = join(work, String(i));
      mkdirSync(folder);
      const ended = runCase(loader, families, folder, item).finally(() =>
        rmSync(folder, { recursive: true, force: true }),
      );
      ended.catch(() => {}); // awaited below, in order
      running.push([item, ended]);
      if (running.length >= 2) {
        const [first, outcome] = running.shift();
        done(first, await outcome);
      }
    }
    for (const [item, ended] of running) done(item, await ended);
  } finally {
    loader.close();
  }
}

class Table {
  counts = { right: 0, left: 0, refused: 0, wrong: 0, failed: 0 };
  lines = { right: 0, wrong: 0, failed: 0 };
  #texts = new Map();

  /** Counts a case; its marks. */
  add({ family, preset, args = [] }, outcome) {
    const name = [family, preset, ...args].join(' ');
    for (const [format, { verdict, text }] of Object.entries(outcome)) {
      (format === 'lines' ? this.lines : this.counts)[verdict]++;
      if (verdict === 'right') continue;
      const key = `${verdict}: ${text}`;
      this.#texts.set(key, [...(this.#texts.get(key) ?? []), format === 'compressed' ? name : `${name} (${format})`]);
    }
    return `${marks[outcome.compressed.verdict]}${marks[outcome.fake.verdict]}`;
  }

  /** Each text with the cells that it is of, what is wrong last. */
  summary() {
    const rank = (text) => Object.keys(this.counts).indexOf(text.split(':')[0]);
    const sorted = [...this.#texts].sort((a, b) => rank(a[0]) - rank(b[0]));
    return sorted.map(([text, names]) => `${text}\n    ${names.length} × ${names.join(', ')}\n`).join('');
  }
}

main(async (argv) => {
  const { values: options } = parseArgs({
    args: argv,
    options: {
      family: { type: 'string', multiple: true },
      preset: { type: 'string', multiple: true },
      third: { type: 'string' },
      keep: { type: 'boolean' },
    },
  });
  buildAll();
  const { status } = spawnSync('bash', [join(root, 'tests/interop/peers.sh'), 'create'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (status === cannotBeMadeHere) {
    process.stdout.write('families: not run, because transformers cannot be installed here (see above)\n');
    return process.env.CI ? 1 : 0;
  }
  if (status !== 0) throw new CommandFailed('tests/interop/peers.sh create', status ?? 1);

  const work = mkdtempSync(join(tmpdir(), 'wasmquant-families-'));
  const families = join(work, 'families');
  try {
    const names = await choose(options);
    const chosen = options.preset ?? presets;
    const made = await linesOf('make_families.py', families, ...names);
    for (const line of made.lines) if (line.includes('NOT MADE')) process.stdout.write(`${line}\n`);
    if (made.code !== 0) throw new Error('not every checkpoint was made');

    const table = new Table();
    process.stdout.write(`${names.length} families × ${chosen.join(', ')}\n`);
    let row = [];
    await runAll(
      [
        ...names.flatMap((family) => chosen.map((preset) => ({ family, preset }))),
        ...rules.filter(({ family, preset }) => names.includes(family) && chosen.includes(preset)),
      ],
      families,
      work,
      (item, outcome) => {
        row.push(table.add(item, outcome));
        if (!item.args && row.length < chosen.length) return;
        const title = item.args ? [item.family, item.preset, ...item.args].join(' ') : item.family;
        process.stdout.write(`${title.padEnd(28)} ${row.join('  ')}\n`);
        row = [];
      },
    );
    const { counts, lines } = table;
    process.stdout.write(`\n${table.summary()}\n`);
    process.stdout.write(
      `lines under "to load it": ${lines.right} right, ${lines.wrong} wrong, ${lines.failed} failed\n`,
    );
    const isWhole = !options.family && !options.preset && options.third === undefined;
    const isLow = isWhole && counts.right < floor;
    if (isLow) process.stdout.write(`fewer cells are right than ${floor}\n`);
    process.stdout.write(
      `${Object.entries(counts)
        .map(([verdict, count]) => `${count} ${verdict}`)
        .join(', ')}\n`,
    );
    return counts.wrong + counts.failed + lines.wrong + lines.failed > 0 || isLow ? 1 : 0;
  } finally {
    if (options.keep) process.stdout.write(`checkpoints: ${families}\n`);
    else rmSync(work, { recursive: true, force: true });
  }
});
