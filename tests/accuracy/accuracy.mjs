// npm run accuracy [-- NAME...]: how far real models are from themselves once they are quantized, by preset and algorithm. A row that
// tests/accuracy/results.json has is not run again unless it is named or --again is given; each is kept when it is finished, with date
// and versions, and makes web/docs/accuracy.md. NAME: a row's name, or a part of names. --list prints the names.
//   .peers-python/models/smollm2 and minilm are made by `npm run test:peers -- transformers`.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Tokenizer } from '@huggingface/tokenizers';
import { PeerEnvironment } from '../peers/environments.mjs';
import { LlamaCpp } from '../peers/llamacpp/server.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, needs, root, say } from '../setup/command.mjs';
import { own } from './own_texts.mjs';
import { keep, recorded } from './record.mjs';
import { rows } from './rows.mjs';
import { texts } from './text.mjs';

/** Sequences of `length` tokens. */
const length = 512;
const reported = 8;
const calibrated = 16;
/** Sentences of an encoder. */
const sentenceCount = 64;
const digits = 5;
/** Pre-quantization steps of Quark's configs. */
const stepsBefore = ['smoothquant'];

/** The Python tools of the table: [environment, script of tests/accuracy/tools, packages whose versions are shown]. */
const tools = {
  gptqmodel: ['gptqmodel', 'gptqmodel_row.py', ['gptqmodel', 'transformers']],
  'llm-compressor': ['llmcompressor', 'llmcompressor_row.py', ['llmcompressor', 'transformers']],
  AutoRound: ['autoround', 'autoround_row.py', ['auto-round', 'transformers']],
};

const folderOf = (model) => join(root, own[model]?.folder ?? join('.peers-python/models', model));

function sizeOf(path) {
  if (!statSync(path).isDirectory()) return statSync(path).size;
  const files = readdirSync(path).filter((name) => name.endsWith('.safetensors'));
  return files.reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}

function tokenizerOf(model) {
  const json = (name) => JSON.parse(readFileSync(join(folderOf(model), name), 'utf8'));
  return new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'));
}

const tokensFrom = (model, text, sequences) => ({ text, tokenizer: tokenizerOf(model), length, sequences });

const rounded = (numbers) =>
  Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value.toPrecision(digits))]));

/** What a run shares between rows; environments are made when a row needs them. */
class Bench {
  text = texts();
  #llamaCpp;
  #environments = new Map();

  /** `library`: exports of dist that rows use. */
  constructor(quantizer, folder, library) {
    this.quantizer = quantizer;
    this.folder = folder;
    Object.assign(this, library);
  }

  get llamaCpp() {
    this.#llamaCpp ??= new LlamaCpp('llamacpp');
    return this.#llamaCpp;
  }

  environment(name) {
    if (!this.#environments.has(name)) this.#environments.set(name, new PeerEnvironment(name));
    return this.#environments.get(name);
  }

  #config({ preset, algorithms, format }) {
    if (format === 'gguf') {
      const recipe = { dialect: 'gguf', recipe: preset };
      return algorithms[0] === 'best' ? this.quantizer.presetConfig(recipe, { best: true }) : recipe;
    }
    if (algorithms[0] === 'best') return this.quantizer.presetConfig(preset, { best: true });
    const config = this.quantizer.presetConfig(preset);
    const entries = (areBefore) =>
      algorithms.filter((name) => stepsBefore.includes(name) === areBefore).map((name) => ({ name }));
    const [before, after] = [entries(true), entries(false)];
    return {
      ...config,
      ...(before.length > 0 && { pre_quant_opt_config: before }),
      ...(after.length > 0 && { algo_config: after }),
    };
  }

  #calibration(model) {
    return own[model]?.calibration() ?? tokensFrom(model, this.text.calibration, calibrated);
  }

  /** The importance matrix of a row that has one: its path. */
  async #matrix(source, { algorithms, model }) {
    if (algorithms[0] !== 'imatrix') return undefined;
    const path = join(this.folder, `${model}.imatrix.gguf`);
    const tokens = this.#calibration(model);
    if (!existsSync(path))
      writeFileSync(path, await this.quantizer.languageModel(source).importance({ calibration: { tokens } }));
    return path;
  }

  /** Writes the row's file or folder: {seconds, processorSeconds}. */
  async quantize(source, row, target) {
    const { algorithms, format, tool, model, preset } = row;
    if (tool in tools) return this.#quantizeByPython(row, target);
    const matrix = await this.#matrix(source, row);
    if (tool === 'llama.cpp') {
      const whole = join(this.folder, 'whole.gguf');
      await this.quantizer.quantizeModel(source, { dialect: 'gguf', recipe: 'f32' }, { target: whole, format });
      const started = performance.now();
      const flags = matrix ? ['--imatrix', matrix] : [];
      this.llamaCpp.tool('llama-quantize', ...flags, whole, target, preset.toUpperCase());
      rmSync(whole);
      return { seconds: (performance.now() - started) / 1000 };
    }
    const [started, before] = [performance.now(), process.cpuUsage()];
    await this.quantizer.quantizeModel(source, this.#config(row), {
      target,
      format,
      ...(matrix
        ? { gguf: { imatrix: readFileSync(matrix) } }
        : algorithms.length > 0 && { calibration: { tokens: this.#calibration(model) } }),
    });
    const { user, system } = process.cpuUsage(before);
    return { seconds: (performance.now() - started) / 1000, processorSeconds: (user + system) / 1e6 };
  }

  async #quantizeByPython({ tool, model, preset }, target) {
    const [environment, script] = tools[tool];
    const { data, shape } = this.tokensOfText(this.#calibration(model), length);
    const rows = Array.from({ length: shape[0] }, (_, row) => [...data.subarray(row * length, (row + 1) * length)]);
    const tokens = join(this.folder, 'tokens.json');
    writeFileSync(tokens, JSON.stringify(rows));
    const [, bits, group] = /^int(\d)_wo_(\d+)$/.exec(preset);
    const given = [folderOf(model), target, bits, group, tokens];
    const path = join(root, 'tests/accuracy/tools', script);
    for await (const found of this.environment(environment).lines(path, ...given)) return found;
    throw new Error(`${script} printed nothing`);
  }

  /** KLD of a language model from the model that it was made from; weights only. */
  async divergence(source, target, model) {
    const quantized = await this.quantizer.open(target);
    try {
      const tokens = own[model]?.report() ?? tokensFrom(model, this.text.report, reported);
      const given = { tokens, against: source, activations: 'float32' };
      const { divergence } = await this.quantizer.languageModel(quantized, { source }).evaluate(given);
      return rounded(divergence);
    } finally {
      await quantized.close();
    }
  }

  /** Cosine and order of the embeddings of sentences. */
  async embeddings(target, model) {
    const lines = this.text.report.split('\n').map((line) => line.trim());
    const sentences = [...new Set(lines.filter((line) => /^[A-Z].{40,}\.$/.test(line)))].slice(0, sentenceCount);
    const script = join(root, 'tests/accuracy/embeddings.py');
    const given = [folderOf(model), target, JSON.stringify(sentences)];
    for await (const found of this.environment('transformers').lines(script, ...given)) return rounded(found);
    throw new Error('embeddings.py printed nothing');
  }

  versionsOf({ tool, model }) {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const packages = (environment, names) =>
      names.map((name) => `${name} ${this.environment(environment).versionOf(name)}`);
    const made = () => {
      if (tool === 'llama.cpp') return [`llama.cpp ${this.llamaCpp.versionOf()}`];
      return tool in tools ? packages(tools[tool][0], tools[tool][2]) : [];
    };
    const measured = model === 'minilm' ? packages('transformers', ['transformers', 'compressed-tensors']) : [];
    const text = own[model] ? [] : [`text of Python ${this.text.version}`];
    return [...made(), `wasmquant ${version}`, ...measured, ...text].join(', ');
  }

  async run(row) {
    const source = await this.quantizer.open(folderOf(row.model));
    const target = join(this.folder, row.format === 'gguf' ? 'model.gguf' : 'model');
    try {
      const took = await this.quantize(source, row, target);
      const measure =
        row.model === 'minilm' ? this.embeddings(target, row.model) : this.divergence(source, target, row.model);
      const found = await measure;
      const bytes = sizeOf(target);
      const whole = Object.fromEntries(Object.entries(took).map(([name, value]) => [name, Math.round(value)]));
      return { name: row.name, ...found, bytes, ...whole, versions: this.versionsOf(row) };
    } finally {
      await source.close();
      rmSync(target, { recursive: true, force: true });
    }
  }
}

function wantedOf(names, again) {
  const kept = new Set(recorded().rows.map(({ name }) => name));
  const isWhole = (part) => rows.some(({ name }) => name === part);
  const isNamed = ({ name }) => names.some((part) => (isWhole(part) ? name === part : name.includes(part)));
  const unknown = names.find((part) => !rows.some(({ name }) => name.includes(part)));
  if (unknown !== undefined) throw new Error(`no row has ${unknown} in its name; --list prints them`);
  return rows.filter((row) => (names.length > 0 ? isNamed(row) : again || !kept.has(row.name)));
}

main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    options: { list: { type: 'boolean' }, again: { type: 'boolean' } },
    allowPositionals: true,
  });
  if (values.list) {
    process.stdout.write(rows.map(({ name }) => `${name}\n`).join(''));
    return 0;
  }
  const wanted = wantedOf(positionals, values.again);
  const missing = wanted.find(({ model }) => !existsSync(join(folderOf(model), 'model.safetensors')));
  if (missing)
    throw needs(`.peers-python/models/${missing.model} is missing: npm run test:peers -- transformers makes it`);
  buildAll();
  const { createQuantizer } = await import(join(root, 'dist/node.js'));
  const { tokensOfText } = await import(join(root, 'dist/model/text_tokens.js'));
  const quantizer = await createQuantizer();
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-accuracy-'));
  let failures = 0;
  try {
    const bench = new Bench(quantizer, folder, { tokensOfText });
    for (const row of wanted) {
      try {
        keep(await bench.run(row));
        say(`${row.name}: kept`);
      } catch (error) {
        failures++;
        say(`${row.name}: ${error.message}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await quantizer[Symbol.asyncDispose]();
  }
  return failures > 0 ? 1 : 0;
});
