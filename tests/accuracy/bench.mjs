// Makes the file or folder of a row, and measures how far it is from its model.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { PeerEnvironment } from '../peers/environments.mjs';
import { LlamaCpp } from '../peers/llamacpp/server.mjs';
import { root } from '../setup/command.mjs';
import { kept, LlamaMeasures } from './llamacpp.mjs';
import { own } from './own_texts.mjs';
import { sizeOfMixture } from './rows.mjs';
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

export const folderOf = (model) => join(root, own[model]?.folder ?? join('.peers-python/models', model));

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

const isCalibratedGguf = ({ format, algorithms }) => format === 'gguf' && algorithms[0] === 'best';

const rounded = (numbers) =>
  Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value.toPrecision(digits))]));

/** What a run shares between rows; environments are made when a row needs them. */
export class Bench {
  text = texts();
  #llamaCpp;
  #llamaMeasures;
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

  get llamaMeasures() {
    this.#llamaMeasures ??= new LlamaMeasures(this.llamaCpp, this.folder);
    return this.#llamaMeasures;
  }

  environment(name) {
    if (!this.#environments.has(name)) this.#environments.set(name, new PeerEnvironment(name));
    return this.#environments.get(name);
  }

  async #recipeOf(source, { preset, model }) {
    const recipe = sizeOfMixture(preset);
    if (!recipe) return { dialect: 'gguf', recipe: preset };
    const plan = await this.quantizer.plan(source, { dialect: 'gguf', recipe }, { format: 'gguf' });
    const budget = { format: 'gguf', targetBytes: plan.totals.bytesAfter };
    const given = { ...budget, calibration: { tokens: this.#calibration(model) } };
    return (await this.quantizer.languageModel(source).autoConfig(given)).config;
  }

  async #config(source, row) {
    const { preset, algorithms, format } = row;
    if (format === 'gguf') {
      const recipe = await this.#recipeOf(source, row);
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

  #report(model) {
    return own[model]?.report() ?? tokensFrom(model, this.text.report, reported);
  }

  /** The importance matrix of a model: its path. */
  #matrix(source, model) {
    const calibration = { tokens: this.#calibration(model) };
    return kept(join(this.folder, `${model}.imatrix.gguf`), async (path) =>
      writeFileSync(path, await this.quantizer.languageModel(source).importance({ calibration })),
    );
  }

  /** A model as a GGUF file of F32: its path. */
  #whole(source, model) {
    return kept(join(this.folder, `${model}.f32.gguf`), (target) =>
      this.quantizer.quantizeModel(source, { dialect: 'gguf', recipe: 'f32' }, { target, format: 'gguf' }),
    );
  }

  /** Writes the row's file or folder: {seconds, processorSeconds}. */
  async quantize(source, row, target) {
    const { algorithms, format, tool, model, preset } = row;
    if (tool in tools) return this.#quantizeByPython(row, target);
    const matrix = algorithms[0] === 'imatrix' ? await this.#matrix(source, model) : undefined;
    if (tool === 'llama.cpp') {
      const whole = await this.#whole(source, model);
      const started = performance.now();
      this.llamaMeasures.quantize(whole, matrix, preset, target);
      return { seconds: (performance.now() - started) / 1000 };
    }
    const [started, before] = [performance.now(), process.cpuUsage()];
    await this.quantizer.quantizeModel(source, await this.#config(source, row), {
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
  async divergence(source, target, row) {
    const quantized = await this.quantizer.open(target);
    try {
      const judged = this.quantizer.languageModel(quantized, { source });
      const tokens = this.#report(row.model);
      const given = { tokens, against: source };
      const { divergence } = await judged.evaluate({ ...given, activations: 'float32' });
      const further = isCalibratedGguf(row) && (await this.#inLlamaCpp(source, target, row, judged));
      return { ...rounded(divergence), ...(further && rounded(further)) };
    } finally {
      await quantized.close();
    }
  }

  /** KLD with inputs rounded as llama.cpp does, by us and by llama-perplexity; speed relative to llama-quantize's file. */
  async #inLlamaCpp(source, target, { model, preset }, judged) {
    const tokens = this.#report(model);
    const { divergence } = await judged.evaluate({ tokens, against: source });
    const whole = await this.#whole(source, model);
    const theirs = this.llamaMeasures.divergence({ model, whole, file: target, tokens });
    const matrix = await this.#matrix(source, model);
    const given = { model, whole, matrix, recipe: preset };
    const speed = sizeOfMixture(preset) ? {} : { speed: this.llamaMeasures.speedOfRecipe(target, given) };
    return { kldOfFile: divergence.meanKld, kldOfLlamaPerplexity: theirs, ...speed };
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

  versionsOf(row) {
    const { tool, model } = row;
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const packages = (environment, names) =>
      names.map((name) => `${name} ${this.environment(environment).versionOf(name)}`);
    const made = () => {
      if (tool === 'llama.cpp' || isCalibratedGguf(row)) return [`llama.cpp ${this.llamaCpp.versionOf()}`];
      return tool in tools ? packages(tools[tool][0], tools[tool][2]) : [];
    };
    const measured = model === 'minilm' ? packages('transformers', ['transformers', 'compressed-tensors']) : [];
    const trained = own[model]?.training ? [`${model} ${own[model].training()}`] : [];
    const text = own[model] ? trained : [`text of Python ${this.text.version}`];
    return [...made(), `wasmquant ${version}`, ...measured, ...text].join(', ');
  }

  async run(row) {
    const source = await this.quantizer.open(folderOf(row.model));
    const target = join(this.folder, row.format === 'gguf' ? 'model.gguf' : 'model');
    try {
      const took = await this.quantize(source, row, target);
      const measure =
        row.model === 'minilm' ? this.embeddings(target, row.model) : this.divergence(source, target, row);
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
