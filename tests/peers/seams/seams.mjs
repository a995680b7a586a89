// npm run test:seams [-- COUNT]: random pairs of everything that can meet (source format and dtype, family with joined, tied and expert layers, spec,
// algorithm, output format, reader), judged by decoders that are not ours. A run may refuse; one that succeeds must have written what was meant.
//   --seed N: the first case (1)   --verbose: every refusal
// Prints how many were right and why others were refused; exit code 1 for a wrong one. A case is made from its number: `-- 1 --seed 1234` repeats it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll } from '../../setup/build.mjs';
import { main } from '../../setup/command.mjs';
import { PeerEnvironment } from '../environments.mjs';
import { SeamCase } from './cases.mjs';
import { Judge } from './judge.mjs';

/** Numbers and names out of a refusal, so that equal reasons are counted together. */
const reasonOf = (text) => text.replaceAll(/"[^"]*"|\S*\d\S*|\S+\.(weight|safetensors)\b/g, '#').slice(0, 110);

main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    options: { seed: { type: 'string', default: '1' }, verbose: { type: 'boolean' } },
    allowPositionals: true,
  });
  const count = Number(positionals[0] ?? 50);
  const start = Number(values.seed);
  const environment = new PeerEnvironment('seams');
  buildAll();
  const { createQuantizer } = await import('../../../dist/node.js');
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-seams-'));
  const judge = new Judge(environment);
  const tally = { right: 0, refused: 0, wrong: 0 };
  const refusals = new Map();
  let quantizer = await createQuantizer({ threads: 0 });
  try {
    const presets = quantizer
      .presets()
      .filter(({ config }) => config.dialect !== 'gguf')
      .map(({ name }) => name);
    for (let seed = start; seed < start + count; ++seed) {
      const seam = new SeamCase(seed, folder, presets);
      let problems;
      try {
        const question = await seam.run(quantizer);
        if (question.refused) {
          const reason = reasonOf(question.refused);
          refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
          if (values.verbose) process.stdout.write(`${seed} refused: ${question.refused}\n`);
          ++tally.refused;
          continue;
        }
        problems = await judge.problems(question);
      } catch (error) {
        problems = [
          String(error.stack ?? error)
            .split('\n')
            .slice(0, 3)
            .join(' '),
        ];
        await quantizer[Symbol.asyncDispose]();
        quantizer = await createQuantizer({ threads: 0 });
      }
      ++tally[problems.length === 0 ? 'right' : 'wrong'];
      for (const problem of problems) process.stdout.write(`${seed} WRONG: ${problem}\n`);
      if (problems.length > 0) process.stdout.write(`  ${seam.describe()}\n`);
    }
  } finally {
    judge.close();
    await quantizer[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
  const reasons = [...refusals].sort((left, right) => right[1] - left[1]);
  process.stdout.write('\nrefused because:\n');
  for (const [reason, times] of reasons) process.stdout.write(`${String(times).padStart(6)}  ${reason}\n`);
  process.stdout.write(`${tally.right} right, ${tally.refused} refused, ${tally.wrong} wrong\n`);
  return tally.wrong > 0 ? 1 : 0;
});
