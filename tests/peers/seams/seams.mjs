// npm run test:seams [-- COUNT]: random pairs of everything that can meet (source format and dtype, family with joined, tied and expert layers, spec,
// algorithm, output format, reader), judged by decoders that are not ours. A run may refuse; one that succeeds must have written what was meant.
//   --seed N: the first case (1)   --loaders: transformers (with compressed-tensors, gptqmodel or AMD Quark) loads each, too, or the plan has warned   --verbose: every refusal
//   --keep FOLDER: where the files of the last case stay   --bail: ends at the first wrong case
// COUNT cases are judged; refused ones do not count. 0, 1 and 3 workers run them in turn. Of values that are not finite the refusal is judged.
// Prints how many were right and why others were refused; exit code 1 for a wrong one. A case is made from its number: `-- 1 --seed 1234` repeats it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll } from '../../setup/build.mjs';
import { main } from '../../setup/command.mjs';
import { SeamCase } from './cases.mjs';
import { Judge, Loaders } from './judge.mjs';

/** What came of the cases. */
class CountWithExample {
  #counts = { right: 0, refused: 0, wrong: 0, loaded: 0, 'not loaded': 0 };
  #reasons = new Map();

  right() {
    ++this.#counts.right;
  }

  /** How many were not refused. */
  get judged() {
    return this.#counts.right + this.#counts.wrong;
  }

  get isWrong() {
    return this.#counts.wrong > 0;
  }

  loaded() {
    ++this.#counts.loaded;
  }

  /** `by`: us (`refused`), before a file was written, or a loader (`not loaded`). */
  refused(by, text) {
    ++this.#counts[by];
    const reason = `${by}: ${reasonOf(text)}`;
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
  }

  wrong(seed, problems, description) {
    ++this.#counts.wrong;
    const lines = problems.map((problem) => `${seed} WRONG: ${problem}\n`);
    process.stdout.write(`${lines.join('')}  ${description}\n`);
  }

  /** Prints it all. Returns how many were wrong. */
  print() {
    const reasons = [...this.#reasons].sort((left, right) => right[1] - left[1]);
    process.stdout.write('\n');
    for (const [reason, times] of reasons) process.stdout.write(`${String(times).padStart(6)}  ${reason}\n`);
    const counts = Object.entries(this.#counts).filter(([what, count]) => count > 0 || what === 'wrong');
    process.stdout.write(`${counts.map(([what, count]) => `${count} ${what}`).join(', ')}\n`);
    return this.#counts.wrong;
  }
}

/** Numbers and names out of a refusal, so that equal reasons are counted together. */
const reasonOf = (text) => text.replaceAll(/"[^"]*"|\S*\d\S*|\S+\.(weight|safetensors)\b/g, '#').slice(0, 110);

/** Cases in all for each that is to be judged. */
const mostRefused = 10;

/** A quantizer for each number of workers, which cases have in turn. */
class Quantizers {
  static #threads = [0, 1, 3];
  #create;
  #made = new Map();

  constructor(create) {
    this.#create = create;
  }

  async of(seed) {
    const threads = Quantizers.#threads[seed % Quantizers.#threads.length];
    if (!this.#made.has(threads)) this.#made.set(threads, await this.#create({ threads }));
    const quantizer = this.#made.get(threads);
    const presets = quantizer.presets().filter(({ config }) => config.dialect !== 'gguf');
    return { threads, quantizer, presets: presets.map(({ name }) => name) };
  }

  /** A case that breaks one breaks no other. */
  async replace(threads) {
    const broken = this.#made.get(threads);
    this.#made.delete(threads);
    await broken?.close();
  }

  async close() {
    for (const threads of [...this.#made.keys()]) await this.replace(threads);
  }
}

/** Runs one case and asks the judges. */
async function tryCase(seed, { folder, judge, loaders, tally, verbose }, quantizers) {
  const { threads, quantizer, presets } = await quantizers.of(seed);
  const seam = new SeamCase(seed, folder, presets, threads);
  const isLoaded = (question) => loaders && Loaders.reads(question);
  const note = (by, text) => {
    if (verbose) process.stdout.write(`${seed} ${by}: ${text}\n`);
    tally.refused(by, text);
  };
  try {
    const question = await seam.run(quantizer);
    if (question.foreseen) return tally.right();
    if (question.refused) return note('refused', question.refused);
    const found = await judge.problems(isLoaded(question) ? question : { ...question, decoded: null });
    const problems = [...(question.unequal ?? []), ...found];
    if (problems.length === 0 && isLoaded(question)) {
      const outcome = await loaders.load(question);
      if (outcome.refused) note('not loaded', outcome.refused);
      else tally.loaded();
      problems.push(...(outcome.problems ?? []));
    }
    if (problems.length === 0) return tally.right();
    tally.wrong(seed, problems, seam.describe());
  } catch (error) {
    await quantizers.replace(threads);
    tally.wrong(
      seed,
      [
        String(error.stack ?? error)
          .split('\n')
          .slice(0, 3)
          .join(' '),
      ],
      seam.describe(),
    );
  }
}

main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    options: {
      seed: { type: 'string', default: '1' },
      loaders: { type: 'boolean' },
      verbose: { type: 'boolean' },
      bail: { type: 'boolean' },
      keep: { type: 'string' },
    },
    allowPositionals: true,
  });
  const count = Number(positionals[0] ?? 50);
  const start = Number(values.seed);
  const mostCases = count * mostRefused;
  buildAll();
  const { createQuantizer } = await import('../../../dist/node.js');
  const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'wasmquant-seams-'));
  const quantizers = new Quantizers(createQuantizer);
  process.exitCode = 1; // a run that never ends would let the process end before it
  const tally = new CountWithExample();
  const judge = new Judge();
  const loaders = values.loaders ? new Loaders() : null;
  try {
    for (let seed = start; tally.judged < count && seed < start + mostCases; ++seed) {
      await tryCase(seed, { folder, judge, loaders, tally, verbose: values.verbose }, quantizers);
      if (values.bail && tally.isWrong) break;
    }
  } finally {
    await quantizers.close();
    judge.close();
    loaders?.close();
    if (!values.keep) rmSync(folder, { recursive: true, force: true });
  }
  const isShort = tally.judged < count && !tally.isWrong;
  if (isShort) process.stdout.write(`only ${tally.judged} of ${mostCases} cases were not refused\n`);
  return tally.print() > 0 || isShort ? 1 : 0;
});
