// What llama.cpp itself says of a calibrated GGUF file: its divergence from the model, and its speed next to llama-quantize's file.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { divergenceTable, optionsOf, printed } from '../peers/llamacpp/perplexity.mjs';

/** Runs of llama-bench for each of the two files, in turn. Processor time counts, and the least of it: other processes disturb that less
 * than tokens per second. */
const benchRuns = 4;
const benchTest = ['-p', '256', '-n', '32', '-r', '1', '-t', '1', '--no-warmup'];

/** A text whose windows in llama-perplexity are these sequences: one token of each, the first, is replaced by the beginning of a text. */
function textOfBytes({ data, shape: [, length] }) {
  const filler = ' '.codePointAt(0);
  return Buffer.from(Array.from(data, (id, i) => (i % length === 0 ? filler : id)).slice(1));
}

export class LlamaMeasures {
  #references = new Map();

  constructor(llamaCpp, folder) {
    this.llamaCpp = llamaCpp;
    this.folder = folder;
  }

  #path(model, name) {
    return join(this.folder, `${model}.${name}`);
  }

  /** `tokens`: [sequences, length] of bytes, or {text, length, sequences}. */
  #reference(model, whole, tokens) {
    if (!this.#references.has(model)) {
      const { text = textOfBytes(tokens), length = tokens.shape[1], sequences = tokens.shape[0] } = tokens;
      writeFileSync(this.#path(model, 'text'), text);
      const options = [...optionsOf(this.#path(model, 'base'), length), '--chunks', String(sequences)];
      this.llamaCpp.tool('llama-perplexity', '-m', whole, '-f', this.#path(model, 'text'), ...options);
      this.#references.set(model, options);
    }
    return this.#references.get(model);
  }

  /** llama-perplexity's mean KLD of a file from the whole model, on the same windows as ours. */
  divergence({ model, whole, file, tokens }) {
    const options = this.#reference(model, whole, tokens);
    const title = 'Mean    KLD';
    return printed(divergenceTable(this.llamaCpp, this.#path(model, 'log'), title, '-m', file, ...options), title);
  }

  /** Processor seconds of llama-bench with a file. */
  #benchSeconds(file) {
    const script = 'TIMEFORMAT=%U; time llama-bench "$@" >/dev/null 2>&1';
    return Number(this.llamaCpp.tool('bash', '-c', `{ ${script}; } 2>&1`, 'bash', '-m', file, ...benchTest));
  }

  /** Speed of a file in llama-bench relative to another's. */
  #speed(file, other) {
    const runs = Array.from({ length: benchRuns }, () => [file, other].map((path) => this.#benchSeconds(path)));
    const [ours, theirs] = [0, 1].map((which) => Math.min(...runs.map((run) => run[which])));
    return theirs / ours;
  }

  /** llama-quantize's file of a recipe. */
  quantize(whole, matrix, recipe, target) {
    this.llamaCpp.tool('llama-quantize', ...(matrix ? ['--imatrix', matrix] : []), whole, target, recipe.toUpperCase());
  }

  /** Speed in llama-bench relative to llama-quantize's file of the same recipe and importance. */
  speedOfRecipe(file, { model, whole, matrix, recipe }) {
    const theirs = this.#path(model, `${recipe}.gguf`);
    try {
      this.quantize(whole, matrix, recipe, theirs);
      return this.#speed(file, theirs);
    } finally {
      rmSync(theirs, { force: true });
    }
  }
}

/** Calls `write` unless the file is there. Returns its path. */
export async function kept(path, write) {
  if (!existsSync(path)) await write(path);
  return path;
}
