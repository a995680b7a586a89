// The Quantizer: checks arguments and delegates.

import { defineDisposeSymbols } from './api/disposable.js';
import { failure, QuantizationError, textOf } from './api/errors.js';
import { inputFormats } from './api/formats.js';
import type {
  Diagnostic,
  Dialect,
  Distribution,
  DistributionOptions,
  InputFormat,
  LanguageModel,
  Model,
  Observer,
  Plan,
  PlanOptions,
  Preset,
  Progress,
  QuantConfig,
  QuantizationSpec,
  QuantizedTensor,
  QuantizeModelOptions,
  Quantizer,
  QuantizerOptions,
  Report,
  Source,
  TensorInput,
  TensorReport,
} from './api/types.js';
import { Instance } from './engine/instance.js';
import { defaultBudgetBytes, type MemoryPlan, planMemory } from './engine/memory.js';
import { EngineObserver } from './engine/observer.js';
import { dequantizeTensor, fakeQuantizeTensor, quantizeTensor } from './engine/tensor.js';
import type { Host } from './host/host.js';
import { OpenedLanguageModel } from './language_model/language_model.js';
import { OpenedModel } from './model/model.js';
import { withPlan } from './plan/plan.js';
import type { LocalPort } from './pool/local_port.js';
import { Pool } from './pool/pool.js';
import type { Workshop } from './pool/workshop.js';

/** More workers gain nothing: files are read from and written to one disk. */
const maxDefaultThreads = 8;

const dialects: readonly string[] = ['auto', 'quark', 'brevitas', 'aihwkit', 'compressed-tensors', 'gptq', 'awq'];
function checkFormat(format: InputFormat | undefined): void {
  if (format === undefined || inputFormats.includes(format)) return;
  throw failure('argument-invalid', 'format', `"${format}" is none of ${inputFormats.join(', ')}`);
}

defineDisposeSymbols();

export class EngineQuantizer implements Quantizer {
  readonly version: { library: string; compiler: string };
  readonly #host: Host;
  readonly #instance: Instance;
  readonly #memory: MemoryPlan;
  readonly #pool: Pool;
  #local: LocalPort | null = null;
  #closed = false;

  private constructor(
    host: Host,
    instance: Instance,
    module: WebAssembly.Module,
    memory: MemoryPlan,
    Local: typeof LocalPort | null,
    workerUrl: string | URL | undefined,
  ) {
    this.#host = host;
    this.#instance = instance;
    this.#memory = memory;
    this.version = instance.call((bound) => bound.version());
    const start = () => {
      if (!Local) return host.startWorker(workerUrl);
      this.#local = new Local(host.workerHost);
      return this.#local;
    };
    this.#pool = new Pool(start, module, Math.max(1, memory.threads));
  }

  static async create(host: Host, options: QuantizerOptions): Promise<EngineQuantizer> {
    const threads = options.threads ?? Math.min(host.cores, maxDefaultThreads);
    const memory = planMemory(options.memoryBudgetBytes ?? defaultBudgetBytes, threads);
    const module = options.wasmModule ?? (await host.compile(options.wasmUrl));
    // Worker scripts include this code already.
    const Local = threads === 0 ? (await import('./pool/local_port.js')).LocalPort : null;
    return new EngineQuantizer(host, await Instance.create(module), module, memory, Local, options.workerUrl);
  }

  /** Live bound C++ objects in this thread, for leak tests. */
  get liveObjects(): number {
    return this.#instance.liveObjects + (this.#local?.server.instance?.liveObjects ?? 0);
  }

  presets(): Preset[] {
    return this.#open().call((module) => module.presets());
  }

  checkConfig(config: string | object, options: { dialect?: Dialect | 'auto' } = {}): Diagnostic[] {
    try {
      const [text, dialect] = [textOfConfig(config), dialectOf(options.dialect)];
      return this.#open().call((module) => module.checkConfig(text, dialect));
    } catch (error) {
      const code = error instanceof QuantizationError ? error.code : 'config-invalid';
      return [{ severity: 'error', code, where: '', message: textOf(error) }];
    }
  }

  parseConfig(config: string | object, options: { dialect?: Dialect | 'auto' } = {}): QuantConfig {
    const [text, dialect] = [textOfConfig(config), dialectOf(options.dialect)];
    return this.#open().call((module) => module.parseConfig(text, dialect));
  }

  convertConfig(config: string | object, to: Dialect): { config: object; losses: Diagnostic[] } {
    const [text, dialect] = [textOfConfig(config), dialectOf(to)];
    return this.#open().call((module) => module.convertConfig(text, dialect));
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

  async open(source: Source | Source[], options: { format?: InputFormat } = {}): Promise<Model> {
    const instance = this.#open();
    checkFormat(options.format);
    const files = await this.#host.openModel(source);
    const model = await OpenedModel.open(instance, files);
    if (options.format === undefined || options.format === model.format) return model;
    await model.close();
    throw failure('format-unknown', files.where, `is ${model.format}, not ${options.format}`);
  }

  plan(model: Model, config: string | object, options: PlanOptions = {}): Plan {
    return withPlan(
      this.#open(),
      opened(model),
      textOfConfig(config),
      options,
      { ...this.#memory.tiles, calibrates: options.calibrated === true },
      (_, plan) => plan,
    );
  }

  async quantizeModel(model: Model, config: string | object, options: QuantizeModelOptions): Promise<Report> {
    const workshop = this.#workshop();
    options.signal?.throwIfAborted();
    const source = opened(model);
    source.indexFor(workshop.instance);
    const text = textOfConfig(config);
    const { reuse } = options;
    const former = reuse && textOfConfig(reuse.config);
    const read = reuse ? [...source.weights, ...opened(reuse.output).weights] : source.weights;
    const inputs = read.flatMap(({ remote }) => (remote.kind === 'path' ? [remote.path] : []));
    const { quantizeInto } = await import('./run/quantize_model.js'); // imported on demand, like those below
    if (options.shards && options.resume)
      throw failure('argument-invalid', 'resume', 'a part of a run is not resumed; run the part again with overwrite');
    const use = { resumes: options.resume ?? false, isShared: options.shards !== undefined };
    const target = await this.#host.openTarget(options.target, options.overwrite ?? false, inputs, use);
    return quantizeInto(workshop, source, text, target, { ...options, library: this.version.library }, former);
  }

  async mergeShards(folder: string, { overwrite = false }: { overwrite?: boolean } = {}): Promise<Report> {
    this.#open();
    return this.#host.mergeShards(folder, overwrite);
  }

  async compare(
    reference: Model,
    quantized: Model,
    options: { signal?: AbortSignal; onProgress?: (progress: Progress) => void } = {},
  ): Promise<Report> {
    const workshop = this.#workshop();
    const { compareModels } = await import('./run/compare.js');
    return compareModels(workshop, opened(reference), opened(quantized), options);
  }

  async distribution(
    reference: Model,
    quantized: Model,
    tensor: string,
    options?: DistributionOptions,
  ): Promise<Distribution> {
    const workshop = this.#workshop();
    const { distributionOf } = await import('./run/weight_histogram.js');
    return distributionOf(workshop, opened(reference), opened(quantized), tensor, options);
  }

  async trial(
    model: Model,
    config: string | object,
    tensors: readonly string[],
    options: PlanOptions & { signal?: AbortSignal } = {},
  ): Promise<TensorReport[]> {
    const workshop = this.#workshop();
    const text = textOfConfig(config);
    const { tryTensors } = await import('./run/preview.js');
    return tryTensors(workshop, opened(model), text, tensors, options);
  }

  languageModel(model: Model, { source }: { source?: Model } = {}): LanguageModel {
    this.#open();
    return new OpenedLanguageModel(() => this.#workshop(), opened(model), source && opened(source, 'source'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#pool.close(failure('state-invalid', 'quantizer', 'was disposed during the run'));
  }

  #open(): Instance {
    if (this.#closed) throw failure('state-invalid', 'quantizer', 'is disposed');
    return this.#instance;
  }

  #workshop(): Workshop {
    return { instance: this.#open(), pool: this.#pool, memory: this.#memory, open: (source) => this.open(source) };
  }
}

/** A config for the core: objects as JSON; JSON text and preset names unchanged. Errors: argument-invalid. */
function textOfConfig(config: string | object): string {
  if (typeof config === 'string') return config;
  if (typeof config === 'object' && config !== null) return JSON.stringify(config);
  throw failure('argument-invalid', 'config', `${typeof config} given; an object, JSON text or preset name is needed`);
}

function dialectOf(dialect: Dialect | 'auto' = 'auto'): string {
  if (dialects.includes(dialect)) return dialect;
  throw failure('argument-invalid', 'dialect', `"${String(dialect)}" is none of ${dialects.join(', ')}`);
}

function opened(model: Model, argument = 'model'): OpenedModel {
  if (model instanceof OpenedModel) return model;
  throw failure('argument-invalid', argument, 'was not made by open() of this library');
}
