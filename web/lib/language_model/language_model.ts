// The LanguageModel. Each method's code is loaded on its first call, because few pages need all four.

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

export class OpenedLanguageModel implements LanguageModel {
  readonly #workshop: () => Workshop;
  readonly #model: OpenedModel;
  readonly #source: OpenedModel | undefined;

  /** `workshop` throws once the quantizer is disposed. */
  constructor(workshop: () => Workshop, model: OpenedModel, source: OpenedModel | undefined) {
    this.#workshop = workshop;
    this.#model = model;
    this.#source = source;
  }

  async evaluate(options: EvaluateOptions): Promise<Evaluation> {
    const workshop = this.#workshop();
    const { evaluateModel } = await import('./evaluate.js');
    return evaluateModel(workshop, this.#model, this.#source, options);
  }

  async generate(options: GenerateOptions): Promise<Generation> {
    const workshop = this.#workshop();
    const { continueText } = await import('./generate.js');
    return continueText(workshop, this.#model, this.#source, options);
  }

  async autoConfig(options: AutoConfigOptions): Promise<AutoConfig> {
    const workshop = this.#workshop();
    const { findConfig } = await import('./auto_config.js');
    return findConfig(workshop, this.#model, options);
  }

  async importance(options: ImportanceOptions): Promise<Uint8Array> {
    const workshop = this.#workshop();
    const { observeImportance } = await import('../calibration/importance.js');
    return observeImportance(workshop, this.#model, options);
  }
}
