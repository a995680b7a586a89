// What llama.cpp itself says of a calibrated GGUF file: its divergence from the model, and its speed next to llama-quantize's file.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { divergenceTable, optionsOf, printed } from '../peers/llamacpp/perplexity.mjs';

/** Runs of llama-bench for each of the two files, in turn; the fastest counts, which other processes disturb least. */
const benchRuns = 5;
const benchTokens = { prompt: 128, generation: 32 };

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

  #tokensPerSecond(file) {
    const tests = ['-p', String(benchTokens.prompt), '-n', String(benchTokens.generation), '-r', '1', '-t', '1'];
    const [prompt, generation] = JSON.parse(this.llamaCpp.tool('llama-bench', '-m', file, ...tests, '-o', 'json'));
    return { prompt: prompt.avg_ts, generation: generation.avg_ts };
  }

  /** Tokens per second of a file divided by those of another: {promptSpeed, generationSpeed}. */
  speed(file, other) {
    const runs = Array.from({ length: benchRuns }, () => [file, other].map((path) => this.#tokensPerSecond(path)));
    const fastest = (which, part) => Math.max(...runs.map((run) => run[which][part]));
    const ratio = (part) => fastest(0, part) / fastest(1, part);
    return { promptSpeed: ratio('prompt'), generationSpeed: ratio('generation') };
  }

  /** llama-quantize's file of a recipe. */
  quantize(whole, matrix, recipe, target) {
    this.llamaCpp.tool('llama-quantize', ...(matrix ? ['--imatrix', matrix] : []), whole, target, recipe.toUpperCase());
  }

  /** `speed` next to llama-quantize's file of the same recipe and importance. */
  speedOfRecipe(file, { model, whole, matrix, recipe }) {
    const theirs = this.#path(model, `${recipe}.gguf`);
    try {
      this.quantize(whole, matrix, recipe, theirs);
      return this.speed(file, theirs);
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
