// npm run test:faults [-- RUNS [KIND]]: faults injected into runs, RUNS of each kind (default 210), and 100 models in a row in
// one process and in one page. Prints for each kind how many were tried and how many times something was lost, left behind
// or said wrongly; exit code 1 when that is not 0.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildAll } from '../setup/build.mjs';
import { main } from '../setup/command.mjs';
import { chromium } from './chromium.mjs';
import { load } from './load.mjs';
import { resume } from './resume.mjs';
import { security } from './security.mjs';
import { signals } from './signals.mjs';
import { sources } from './sources.mjs';
import { targets } from './targets.mjs';
import { workers } from './workers.mjs';

/** Models in a row: a leak shows whatever the number of faults. */
const inARow = 100;

/** Signals get all the runs, other kinds, whose every run tries several faults, a quarter. */
function shareOf(name, count) {
  if (name === 'load' || name === 'chromium') return inARow;
  return name === 'signals' ? count : Math.ceil(count / 4);
}

main(async ([runs = '210', only = '']) => {
  buildAll();
  const { createQuantizer } = await import('../../dist/node.js');
  const count = Number(runs);
  let passed = 0;
  let failed = 0;
  for (const [name, inject] of Object.entries({
    signals,
    resume,
    sources,
    targets,
    workers,
    load,
    chromium,
    security,
  })) {
    if (!name.includes(only)) continue;
    const folder = mkdtempSync(join(tmpdir(), `wasmquant-${name}-`));
    const before = [passed, failed];
    try {
      const told = await inject(
        folder,
        shareOf(name, count),
        (ok, what) => {
          if (ok) passed += 1;
          else failed += 1;
          if (!ok) process.stdout.write(`FAILED  ${what}\n`);
        },
        createQuantizer,
      );
      const [tried, wrong] = [passed + failed - before[0] - before[1], failed - before[1]];
      process.stdout.write(`${name.padEnd(9)} ${tried} checks, ${wrong} failures: ${told}\n`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  process.stdout.write(`\nfaults: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
