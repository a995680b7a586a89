// What cases of codes need: models that are opened, planned, run and compared, in folders that end with the test.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStream, modelFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { safetensors } from '../written_model.mjs';

/** Whether it is {name: tensor}, and not a source with a method `read`. */
const isTensors = (source) => Object.getPrototypeOf(source) === Object.prototype && !('read' in source);

export class Provoker {
  constructor(t, quantizer) {
    this.t = t;
    this.quantizer = quantizer;
  }

  folder() {
    return scratchFolder(this.t);
  }

  /** A folder with these tensors and this config.json. */
  modelFolder(tensors, config) {
    const folder = join(this.folder(), 'model');
    mkdirSync(folder);
    writeFileSync(join(folder, 'model.safetensors'), safetensors(tensors));
    if (config) writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    return folder;
  }

  /** config.json of the sample. */
  settings() {
    return JSON.parse(readFileSync(join(tinyLlama, 'config.json'), 'utf8'));
  }

  /** The sample without one of its files. */
  without(name) {
    const folder = this.folder();
    cpSync(tinyLlama, folder, { recursive: true, filter: (path) => !path.includes('bf16') });
    rmSync(join(folder, name));
    return folder;
  }

  /** The sample with one of its JSON files changed. */
  changed(name, change) {
    const folder = this.without(name);
    const text = readFileSync(join(tinyLlama, name), 'utf8');
    writeFileSync(join(folder, name), JSON.stringify(change(JSON.parse(text))));
    return folder;
  }

  /** The sample with another text in one of its files. */
  changedText(name, text) {
    const folder = this.without(name);
    writeFileSync(join(folder, name), text);
    return folder;
  }

  /** A model: of a path or bytes, or {name: tensor}, then with `config` as its config.json. */
  open(source, config) {
    return modelFor(this.t, this.quantizer, isTensors(source) ? this.modelFolder(source, config) : source);
  }

  async plan(source, config, options = {}, modelConfig = undefined) {
    return (await this.quantizer.plan(await this.open(source, modelConfig), config, options)).diagnostics;
  }

  /** Runs into memory. */
  async run(source, config, options = {}) {
    const out = memoryStream();
    const model = await this.open(source);
    const report = await this.quantizer.quantizeModel(model, config, { target: out.stream, ...options });
    return { report, bytes: out.bytes() };
  }

  async into(source, config, options) {
    return this.quantizer.quantizeModel(await this.open(source), config, options);
  }

  async compared(one, other) {
    return (await this.quantizer.compare(await this.open(one), await this.open(other))).diagnostics;
  }
}
