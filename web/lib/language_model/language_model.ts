// The LanguageModel. Each method's code is loaded on its first call, because few pages need all four.

import { loaded } from '../api/loaded.js';
import type {
  AutoConfig,
  AutoConfigOptions,
  EmbeddingOptions,
  Embeddings,
  EvaluateOptions,
  Evaluation,
  GenerateOptions,
  Generation,
  ImportanceOptions,
  LanguageModel,
} from '../api/types.js';
import type { OpenedModel } from '../model/model.js';
import type { RunResources } from '../pool/run_resources.js';

type Run = <T>(
  signal: AbortSignal | undefined,
  use: (resources: RunResources, signal: AbortSignal) => Promise<T>,
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
    return this.#run(options?.signal, async (resources, signal) => {
      const { evaluateModel } = await loaded(import('./evaluate.js'));
      return evaluateModel(resources, this.#model, this.#source, options, signal);
    });
  }

  async embeddings(options: EmbeddingOptions): Promise<Embeddings> {
    return this.#run(options?.signal, async (resources, signal) => {
      const { embedTexts } = await loaded(import('./embeddings.js'));
      return embedTexts(resources, this.#model, this.#source, options, signal);
    });
  }

  async isEncoder(): Promise<boolean> {
    return this.#run(undefined, async ({ instance }) => {
      const { isEncoder } = await loaded(import('./embeddings.js'));
      return isEncoder(instance, this.#model, this.#source);
    });
  }

  async generate(options: GenerateOptions): Promise<Generation> {
    return this.#run(options?.signal, async (resources, signal) => {
      const { continueText } = await loaded(import('./generate.js'));
      return continueText(resources, this.#model, this.#source, options, signal);
    });
  }

  async autoConfig(options: AutoConfigOptions): Promise<AutoConfig> {
    return this.#run(options?.signal, async (resources, signal) => {
      const { findConfig } = await loaded(import('./auto_config.js'));
      return findConfig(resources, this.#model, this.#source, options, signal);
    });
  }

  async importance(options: ImportanceOptions): Promise<Uint8Array> {
    return this.#run(options?.signal, async (resources, signal) => {
      const { observeImportance } = await loaded(import('../calibration/importance.js'));
      return observeImportance(resources, this.#model, this.#source, options, signal);
    });
  }
}
