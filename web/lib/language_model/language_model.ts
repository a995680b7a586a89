// The LanguageModel. Each method's code is loaded on its first call, because few pages need all four.

import { loaded } from '../api/loaded.js';
import type {
  AutoConfig,
  AutoConfigOptions,
  EvaluateOptions,
  Evaluation,
  GenerateOptions,
  Generation,
  ImportanceOptions,
  LanguageModel,
} from '../api/types.js';
import type { OpenedModel } from '../model/model.js';
import type { Workshop } from '../pool/workshop.js';

type Run = <T>(
  signal: AbortSignal | undefined,
  use: (workshop: Workshop, signal: AbortSignal) => Promise<T>,
) => Promise<T>;

export class OpenedLanguageModel implements LanguageModel {
  readonly #run: Run;
  readonly #model: OpenedModel;
  readonly #source: OpenedModel | undefined;

  /** `run` throws once the quantizer is disposed. */
  constructor(run: Run, model: OpenedModel, source: OpenedModel | undefined) {
    this.#run = run;
    this.#model = model;
    this.#source = source;
  }

  async evaluate(options: EvaluateOptions): Promise<Evaluation> {
    return this.#run(options?.signal, async (workshop, signal) => {
      const { evaluateModel } = await loaded(import('./evaluate.js'));
      return evaluateModel(workshop, this.#model, this.#source, { ...options, signal });
    });
  }

  async generate(options: GenerateOptions): Promise<Generation> {
    return this.#run(options?.signal, async (workshop, signal) => {
      const { continueText } = await loaded(import('./generate.js'));
      return continueText(workshop, this.#model, this.#source, { ...options, signal });
    });
  }

  async autoConfig(options: AutoConfigOptions): Promise<AutoConfig> {
    return this.#run(options?.signal, async (workshop, signal) => {
      const { findConfig } = await loaded(import('./auto_config.js'));
      return findConfig(workshop, this.#model, { ...options, signal });
    });
  }

  async importance(options: ImportanceOptions): Promise<Uint8Array> {
    return this.#run(options?.signal, async (workshop, signal) => {
      const { observeImportance } = await loaded(import('../calibration/importance.js'));
      return observeImportance(workshop, this.#model, { ...options, signal });
    });
  }
}
