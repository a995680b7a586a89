// Running models: evaluate, generate, measure layers.

import type { AutoConfig, AutoConfigOptions } from './auto_config_types.js';
import type {
  EvaluateOptions,
  Evaluation,
  GenerateOptions,
  Generation,
  ImportanceOptions,
} from './calibration_types.js';

/**
 * A model of the Llama architecture as a language model; see {@link Quantizer.languageModel}. It depends on its model
 * and need not be closed.
 */
export interface LanguageModel {
  /**
   * Perplexity and bits per byte of the model, quantized or not, from a float32 forward pass in the workers. The thread
   * count does not change the result.
   * @throws QuantizationError `not-implemented` for other families, `argument-invalid` for tokens that do not fit the
   * model, `tensor-missing`, `shape-mismatch`, `memory-budget`
   */
  evaluate(options: EvaluateOptions): Promise<Evaluation>;
  /**
   * Continues a prompt. Decodes greedily, in one worker, and keeps keys, values and the weights that fit the memory budget. The thread
   * count does not change the tokens. @throws QuantizationError as `evaluate`
   */
  generate(options: GenerateOptions): Promise<Generation>;
  /**
   * Chooses a spec for every linear layer of the transformer blocks within a budget, by measuring all candidates.
   * @throws QuantizationError argument-invalid (no budget, or too small), not-implemented for other kinds of models
   */
  autoConfig(options: AutoConfigOptions): Promise<AutoConfig>;
  /**
   * An importance matrix like llama-imatrix's (mean squares of layer inputs), for `gguf.imatrix` and llama-quantize.
   * @throws QuantizationError as `quantizeModel` with that calibration
   */
  importance(options: ImportanceOptions): Promise<Uint8Array>;
}
