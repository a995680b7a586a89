// Running models: evaluate, generate, measure layers; configs chosen for a budget.

import type {
  EvaluateOptions,
  Evaluation,
  GenerateOptions,
  Generation,
  ImportanceOptions,
  TokenCalibration,
  Tokenizer,
} from './calibration_types.js';
import type { OutputFormat } from './formats.js';
import type { Model } from './model_types.js';
import type { Totals } from './plan_types.js';
import type { Progress } from './progress_types.js';
import type { QuantizationSpec } from './tensor_types.js';

/**
 * A decoder as a language model, or an encoder of BERT's as a maker of embeddings; see {@link Quantizer.languageModel}. It depends on its model
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
   * Embeddings of texts by an encoder, or a decoder that makes embeddings, quantized or not, from the same forward pass, and with `against`
   * how well they agree with another's: cosines, and whether a search finds the same order.
   * @throws QuantizationError `not-implemented` for other families; `json-invalid`, `file-invalid` or `format-unsupported` for modules of
   * sentence-transformers that are broken or not computed here; else as `evaluate`
   */
  embeddings(options: EmbeddingOptions): Promise<Embeddings>;
  /**
   * True for models that make embeddings: encoders without a decoder, which support nothing else, and decoders whose folder has the modules of
   * sentence-transformers, or whose GGUF file names its pooling.
   */
  isEncoder(): Promise<boolean>;
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

/** What becomes of the states of a text's tokens: their mean, or that of the first or last one. */
export type Pooling = 'mean' | 'first' | 'last';

/** Options of `embeddings`. */
export interface EmbeddingOptions {
  /** Texts, each of which becomes one embedding; with `against` at least three. */
  texts: readonly string[];
  /** The model's tokenizer. */
  tokenizer: Tokenizer;
  /** Tokens that a text may have with the tokenizer's own; longer ones are cut. Default 256, or the model's maximum if that is less. */
  length?: number;
  /**
   * How the states of a text's tokens become its embedding: their mean, or that of the first or last token. Default: as the GGUF file or the
   * modules of sentence-transformers in the model's folder say (of the first of model, source and `against` that says it), else the mean.
   * Dense modules of that folder are computed on the result, for both models.
   */
  pooling?: Pooling;
  /** Precision of the inputs of linear layers. `int8`: quantized per token. Default `float32`. */
  activations?: 'float32' | 'int8';
  /** The reference, usually the model before it was quantized, opened by the same quantizer. The result then has `agreement`. */
  against?: Model;
  /** Cancels. */
  signal?: AbortSignal;
  /** Every batch of texts reads all tensors; `count` and `bytesTotal` cover all batches of both models. */
  onProgress?: (progress: Progress) => void;
}

/** How far embeddings are from a reference's. */
export interface Agreement {
  /** Mean over the texts of the cosine between both embeddings. */
  meanCosine: number;
  /** The smallest of these. */
  leastCosine: number;
  /** Index of the text that has it. */
  leastText: number;
  /** Spearman's correlation of the cosines of all pairs of texts: whether a search finds the same order. 1 is the same order. */
  rankCorrelation: number;
  /** Share of the texts, 0 to 1, whose nearest other text is the same. */
  sameNearest: number;
}

/** Embeddings of texts. */
export interface Embeddings {
  /** One for each text, of length 1. */
  vectors: Float32Array[];
  /** How they were made of the tokens. */
  pooling: Pooling;
  /** Folders of the dense modules that were computed on it, such as `2_Dense`. */
  dense: string[];
  /** Tokens of all texts. */
  tokens: number;
  /** With `against`. */
  agreement?: Agreement;
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Number of workers used. */
  threads: number;
}

/** Options of `autoConfig`; give exactly one of the three targets. */
export interface AutoConfigOptions {
  /** One of the three. Bits per quantized weight including scales, counted as in `totals.bitsPerWeight` of a plan. */
  targetBits?: number;
  /** Bytes of the whole output, counted as in `totals.bytesAfter` of a plan. */
  targetBytes?: number;
  /** Upper limit for the sum of the layers' `loss`, of a GGUF mixture for `measuredLoss`, in nats. */
  maxLoss?: number;
  /** Token ids, as for calibrated algorithms; 8 × 256 are enough. */
  calibration: TokenCalibration;
  /** Specs to choose from; of GGUF types, `{ dtype: 'q4_k' }`. Default: those that the format supports, of GGUF those whose codes algorithms choose. */
  candidates?: QuantizationSpec[];
  /** Layers that keep their dtype, in addition to all outside of blocks. Default `['lm_head']`; in GGUF none, and tables of tokens get a type, too. */
  exclude?: string[];
  /** Default `compressed-tensors`. */
  format?: OutputFormat;
  /** As for `plan`; the later run needs the same value. */
  includeTowers?: boolean;
  /** As for `plan`; the later run needs the same value. */
  experts?: 'include' | 'exclude';
  /** Cancels. */
  signal?: AbortSignal;
  /** Called while layers are measured. */
  onProgress?: (progress: Progress) => void;
}

/** What one candidate costs in one layer. */
export interface AutoChoice {
  /** Size of the layer's weight with this candidate. */
  bytes: number;
  /** Estimated loss of the model from only this layer; smaller is better. */
  loss: number;
}

/** One measured layer. */
export interface AutoLayer {
  /** Layer name. */
  name: string;
  /** Elements of the weight. */
  elements: number;
  /** In the order of `candidates`; null if one does not fit the layer. */
  choices: (AutoChoice | null)[];
  /** Index into `choices`. */
  chosen: number;
}

/** A config for a budget, with the measurements behind it. */
export interface AutoConfig {
  /** An ordinary config for `plan` and `quantizeModel`. */
  config: Record<string, unknown>;
  /** The specs that were tried, in order. */
  candidates: QuantizationSpec[];
  /** Every measured layer. */
  layers: AutoLayer[];
  /** Totals of the plan for `config`. */
  totals: Totals;
  /**
   * Sum over layers of the relative squared error of the residual stream, each layer measured by itself; of a GGUF mixture in nats, the
   * mean Kullback-Leibler divergence that each layer was measured to cause.
   */
  loss: number;
  /** Of a GGUF mixture: the mean KLD of the model with all layers rounded to nearest as chosen, on the calibration's first 512 tokens. */
  measuredLoss?: number;
}
