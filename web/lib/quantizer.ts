// The Quantizer: checks arguments and delegates.

import { check, jsonText } from './api/arguments.js';
import { editedPreset } from './api/config_builders.js';
import { failure, QuantizationError, textOf } from './api/errors.js';
import { writesGraph } from './api/formats.js';
import { loaded } from './api/loaded.js';
import {
  compareOptions,
  dialectNames,
  openOptions,
  planOptions,
  previewOptions,
  quantizerOptions,
  runOptions,
  watched,
} from './api/option_kinds.js';
import type {
  CompareOptions,
  Comparison,
  Config,
  Curve,
  CurveOptions,
  Diagnostic,
  Dialect,
  Distribution,
  DistributionOptions,
  LanguageModel,
  MergeOptions,
  Model,
  Observer,
  OpenOptions,
  Plan,
  PlanOptions,
  Preset,
  PresetEdits,
  PreviewOptions,
  QuantConfig,
  QuantizationSpec,
  QuantizedTensor,
  QuantizeModelOptions,
  Quantizer,
  QuantizerOptions,
  RunReport,
  Source,
  TensorInput,
  TensorReport,
} from './api/types.js';
import { defineDisposeSymbols } from './engine/disposable.js';
import { Instance } from './engine/instance.js';
import { type MemoryPlan, planMemory } from './engine/memory.js';
import { EngineObserver } from './engine/observer.js';
import { dequantizeTensor, fakeQuantizeTensor, quantizeTensor } from './engine/tensor.js';
import type { Host } from './host/host.js';
import { OpenedLanguageModel } from './language_model/language_model.js';
import { OpenedModel } from './model/model.js';
import type { LocalPort } from './pool/local_port.js';
import { Pool } from './pool/pool.js';
import type { RunResources } from './pool/run_resources.js';
import { Runs } from './pool/runs.js';

/** More workers gain nothing: files are read from and written to one disk. */
const maxDefaultThreads = 8;

const disposed = (when = '') => failure('state-invalid', 'quantizer', `was disposed${when}`);

defineDisposeSymbols();

export class EngineQuantizer implements Quantizer {
  readonly version: { library: string; compiler: string };
  readonly #host: Host;
  readonly #instance: Instance;
  readonly #memory: MemoryPlan;
  readonly #pool: Pool;
  readonly #runs = new Runs();
  /** What runs where there are no workers; loaded with the first run. */
  #Local: typeof LocalPort | null = null;
  #local: LocalPort | null = null;
  #closed = false;

  private constructor(
    host: Host,
    instance: Instance,
    module: WebAssembly.Module,
    memory: MemoryPlan,
    { workerUrl, workersAfterMs = 0 }: Pick<QuantizerOptions, 'workerUrl' | 'workersAfterMs'>,
  ) {
    this.#host = host;
    this.#instance = instance;
    this.#memory = memory;
    this.version = instance.call((bound) => bound.version());
    const here = () => {
      if (!this.#Local) throw new Error('a job came before the first run');
      this.#local = new this.#Local(host.workerHost);
      return this.#local;
    };
    const worker = () => host.startWorker(workerUrl);
    this.#pool = new Pool(
      memory.threads === 0 ? here : worker,
      module,
      Math.max(1, memory.threads),
      memory.threads > 0 && workersAfterMs > 0 ? { start: here, milliseconds: workersAfterMs } : null,
    );
  }

  static async create(host: Host, options: QuantizerOptions): Promise<EngineQuantizer> {
    const { wasmUrl, ...given } = check(options, quantizerOptions, 'options');
    const threads = given.threads ?? (host.hasWorkers ? Math.min(host.cores, maxDefaultThreads) : 0);
    const memory = planMemory(given.memoryBudgetBytes ?? host.budgetBytes, threads);
    const module = given.wasmModule ?? (await host.compile(wasmUrl));
    return new EngineQuantizer(host, await Instance.create(module), module, memory, given);
  }

  /** Live bound C++ objects in this thread, for leak tests. */
  get liveObjects(): number {
    return this.#instance.liveObjects + (this.#local?.server.instance?.liveObjects ?? 0);
  }

  presets(): Preset[] {
    return this.#open().call((module) => module.presets());
  }

  presetConfig(preset: string | object, edits: PresetEdits = {}): Record<string, unknown> {
    return editedPreset(this.presets(), preset, edits);
  }

  checkConfig(config: Config, options: { dialect?: Dialect | 'auto' } = {}): Diagnostic[] {
    try {
      const [text, dialect] = [textOfConfig(config), dialectOf(options)];
      return this.#open().call((module) => module.checkConfig(text, dialect));
    } catch (error) {
      const {
        code,
        where = '',
        detail,
      } = error instanceof QuantizationError ? error : failure('config-invalid', '', textOf(error), error);
      return [{ severity: 'error', code, where, message: detail }];
    }
  }

  parseConfig(config: Config, options: { dialect?: Dialect | 'auto' } = {}): QuantConfig {
    const [text, dialect] = [textOfConfig(config), dialectOf(options)];
    return this.#open().call((module) => module.parseConfig(text, dialect));
  }

  convertConfig(config: Config, to: Dialect): { config: object; losses: Diagnostic[] } {
    const text = textOfConfig(config);
    check(to, dialectNames, 'to');
    return this.#open().call((module) => module.convertConfig(text, to));
  }

  quantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): QuantizedTensor {
    return quantizeTensor(this.#open(), tensor, spec);
  }

  dequantize(quantized: QuantizedTensor): Float32Array {
    return dequantizeTensor(this.#open(), quantized);
  }

  fakeQuantize(tensor: TensorInput, spec: QuantizationSpec | QuantizationSpec[]): Float32Array {
    return fakeQuantizeTensor(this.#open(), tensor, spec);
  }

  createObserver(spec: QuantizationSpec): Observer {
    return new EngineObserver(this.#open(), spec);
  }

  async open(source: Source | Source[], options: OpenOptions = {}): Promise<Model> {
    const instance = this.#open();
    const given = check(options, openOptions, 'options');
    const files = await this.#host.openModel(source, given.hub ?? {});
    const model = await OpenedModel.open(instance, files, given);
    const isWanted = given.format === undefined || given.format === model.format;
    if (isWanted && !this.#closed) return model;
    await model.close();
    throw this.#closed ? disposed() : failure('format-unknown', files.where, `is ${model.format}, not ${given.format}`);
  }

  async plan(model: Model, config: Config, options: PlanOptions = {}): Promise<Plan> {
    const task = this.planTask(model, config, options);
    return this.#run(task.choices.signal, async (resources, signal) => {
      const { planModel } = await loaded(import('./plan/plan_model.js'));
      return planModel(resources, task, signal);
    });
  }

  /** What `plan` is to do, also in this thread (internal.ts). */
  planTask(model: Model, config: Config, options: PlanOptions) {
    const instance = this.#open();
    const given = check(options, planOptions, 'options');
    const settings = { ...this.#memory.tiles, calibrates: given.calibrated === true };
    const source = opened(model);
    return {
      instance,
      source,
      text: textOfConfig(config),
      choices: { ...given, folder: source.isInOnnxFolder },
      settings,
    };
  }

  async quantizeModel(model: Model, config: Config, options: QuantizeModelOptions): Promise<RunReport> {
    this.#open();
    const own = check(options, runOptions, 'options');
    const { reuse, shards, resume } = own;
    if (shards && resume)
      throw failure('argument-invalid', 'resume', 'a part of a run is not resumed; run the part again with overwrite');
    return this.#run(own.signal, async (resources, signal) => {
      const source = opened(model);
      source.indexFor(resources.instance);
      const text = textOfConfig(config);
      const former = reuse && textOfConfig(reuse.config);
      const read = reuse ? [...source.weights, ...opened(reuse.output, 'reuse.output').weights] : source.weights;
      const inputs = read.flatMap(({ remote }) => (remote.kind === 'path' ? [remote.path] : []));
      const { quantizeInto } = await loaded(import('./run/quantize_model.js')); // on demand, like those below
      const adds = writesGraph(source.format, own.format) && !shards;
      const use = { resumes: resume ?? false, isShared: shards !== undefined, adds };
      const target = await this.#host.openTarget(own.target, own.overwrite ?? false, inputs, use);
      return quantizeInto(resources, source, text, target, { ...own, signal }, former);
    });
  }

  async mergeShards(folder: string, options: MergeOptions = {}): Promise<RunReport> {
    check(folder, 'string', 'folder');
    const own = check(options, { ...watched, overwrite: 'boolean' }, 'options');
    return this.#run(own.signal, (_, signal) => this.#host.mergeShards(folder, { ...own, signal }));
  }

  async compare(reference: Model, quantized: Model, options: CompareOptions = {}): Promise<Comparison> {
    const own = check(options, compareOptions, 'options');
    return this.#run(own.signal, async (resources, signal) => {
      const { compareModels } = await loaded(import('./run/compare.js'));
      const models = [opened(reference, 'reference'), opened(quantized, 'quantized')] as const;
      const report = await compareModels(resources, ...models, { ...own, signal });
      if (own.runtime === undefined && !own.measureSpeed) return report;
      const { compareOutputs } = await loaded(import('./curve/outputs.js'));
      return { ...report, outputs: await compareOutputs(...models, { ...own, signal }) };
    });
  }

  async distribution(
    reference: Model,
    quantized: Model,
    tensor: string,
    options: DistributionOptions = {},
  ): Promise<Distribution> {
    check(tensor, 'string', 'tensor');
    const own = check(options, { bins: 'number', signal: 'signal' }, 'options');
    return this.#run(own.signal, async (resources, signal) => {
      const { histogramOf } = await loaded(import('./run/weight_histogram.js'));
      const models = [opened(reference, 'reference'), opened(quantized, 'quantized')] as const;
      return histogramOf(resources, ...models, tensor, { ...own, signal });
    });
  }

  async preview(
    model: Model,
    config: Config,
    tensors: readonly string[],
    options: PreviewOptions = {},
  ): Promise<TensorReport[]> {
    const names = check(tensors, 'strings', 'tensors');
    const own = check(options, previewOptions, 'options');
    return this.#run(own.signal, async (resources, signal) => {
      const text = textOfConfig(config);
      const { previewTensors } = await loaded(import('./run/preview.js'));
      return previewTensors(resources, opened(model), text, names, { ...own, signal });
    });
  }

  async curve(model: Model, options: CurveOptions = {}): Promise<Curve> {
    return this.#run(options?.signal, async (resources, signal) => {
      const { curveOf } = await loaded(import('./curve/curve.js'));
      return curveOf({ resources, host: this.#host }, opened(model), options, signal);
    });
  }

  languageModel(model: Model, options: { source?: Model } = {}): LanguageModel {
    this.#open();
    const given = check(options, { source: 'any' }, 'options');
    const source = given.source && opened(given.source, 'source');
    return new OpenedLanguageModel((signal, use) => this.#run(signal, use), opened(model), source);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const reason = disposed(' during the run');
    const ended = this.#runs.end(reason);
    await this.#pool.close(reason);
    await ended;
  }

  async #run<T>(
    signal: AbortSignal | undefined,
    use: (resources: RunResources, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const resources = { instance: this.#open(), pool: this.#pool, memory: this.#memory, open: this.open.bind(this) };
    return this.#runs.during(signal, async (either) => {
      // Worker scripts include this code already.
      if (this.#memory.threads === 0 || this.#pool.hasStandIn)
        this.#Local ??= (await loaded(import('./pool/local_port.js'))).LocalPort;
      return use(resources, either);
    });
  }

  #open(): Instance {
    if (this.#closed) throw disposed();
    return this.#instance;
  }
}

/** A config for the core: objects as JSON; JSON text and preset names unchanged. Errors: argument-invalid. */
function textOfConfig(config: Config): string {
  if (typeof config === 'string') return config;
  if (typeof config === 'object' && config !== null) return jsonText(config, 'config', '');
  throw failure(
    'argument-invalid',
    'config',
    `found ${typeof config}; it must be an object, JSON text or a preset name`,
  );
}

function dialectOf(options: { dialect?: Dialect | 'auto' }): string {
  return check(options, { dialect: dialectNames }, 'options').dialect ?? 'auto';
}

function opened(model: Model, argument = 'model'): OpenedModel {
  if (model instanceof OpenedModel) return model;
  throw failure('argument-invalid', argument, 'was not made by open() of this library');
}
