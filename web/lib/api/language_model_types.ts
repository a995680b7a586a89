// Models that are run: evaluated, continued, measured layer by layer.

import type { AutoConfig, AutoConfigOptions } from './auto_config_types.js';
import type {
  EvaluateOptions,
  Evaluation,
  GenerateOptions,
  Generation,
  ImportanceOptions,
} from './calibration_types.js';

/**
 * A model of the Llama architecture (llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text) as what it is made for; see
 * {@link Quantizer.languageModel}. It lives as long as its model: there is nothing to close.
 */
export interface LanguageModel {
  /**
   * Perplexity and bits per byte of the model, quantized or not, by a float32 forward pass in the workers. The result is the same for any number of threads.
   * @throws QuantizationError `not-implemented` for other families, `argument-invalid` for tokens that do not fit the
   * model, `tensor-missing`, `shape-mismatch`, `memory-budget`
   */
  evaluate(options: EvaluateOptions): Promise<Evaluation>;
  /**
   * Continues a prompt. Decodes greedily without a KV cache: use it to
   * spot-check quality, not for speed. The tokens are the same for any number of threads.
   * @throws QuantizationError as `evaluate`
   */
  generate(options: GenerateOptions): Promise<Generation>;
  /**
   * Chooses a spec for every layer within a budget: an ordinary config, and the table that
   * led to it. Every linear layer of the transformer blocks is measured with every candidate. @throws
   * QuantizationError argument-invalid (no budget, one that is too small), not-implemented for other kinds of models.
   */
  autoConfig(options: AutoConfigOptions): Promise<AutoConfig>;
  /**
   * The file that llama-imatrix would write: mean squares of what goes into the layers of a model, for `gguf.imatrix` and for
   * llama-quantize. @throws QuantizationError as `quantizeModel` does with that calibration.
   */
  importance(options: ImportanceOptions): Promise<Uint8Array>;
}
