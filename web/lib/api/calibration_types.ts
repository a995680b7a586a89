// Input data of a model (token ids, text, activations), and results of evaluating it.

import type { Model } from './model_types.js';
import type { Progress } from './progress_types.js';
import type { Source } from './source_types.js';
import type { TensorInput } from './tensor_types.js';

/**
 * Input for algorithms that use activations: token ids `[sequences, length]` from the model's own tokenizer; 32 × 256
 * tokens of ordinary text are enough. `evaluate` must support the model. Padding that a mask names counts nowhere, and
 * nothing attends to it: the result is that of the same rows without it.
 */
export interface TokenCalibration {
  /** Token ids, rows of any lengths, an opened safetensors file of ids (I64, I32 or U16), or text. */
  tokens: TokenInput | TokenRows | Model | TextInput;
  /** The tensor in that file; default `input_ids`, `tokens`, or the only one but `attention_mask`, its mask. */
  tensor?: string;
  /** For a GGUF file that does not tell all that a forward pass needs to know, such as a mixture of experts: the opened folder it was made from. */
  source?: Model;
}

/** The inputs or outputs of a layer; the keys, after RoPE, or the values of an attention. */
export type ActivationRole = 'input' | 'output' | 'key' | 'value';

/** A batch of values that enter or leave a layer, or that an attention reads. */
export interface ActivationBatch extends TensorInput {
  /** Layer name: the weight's name without `.weight`; for keys and values that of the attention. */
  layer: string;
  /** What these are. */
  role: ActivationRole;
}

/** Repeatable activations that can be limited to some layers, from `captureActivations` of `wasmquant/onnxruntime`. */
export interface CapturedActivations extends AsyncIterable<ActivationBatch> {
  /** The same for these layers only; calibration requests those whose scales it needs. */
  only(wanted: readonly Pick<ActivationBatch, 'layer' | 'role'>[]): AsyncIterable<ActivationBatch>;
}

/**
 * Calibration data:
 * - Token ids, for algorithms (not rotation and cle), and for static inputs and a key-value cache unless an algorithm changes
 *   layer inputs.
 * - Activations, for static inputs and outputs (`input_tensors`, `output_tensors` without `is_dynamic`) and `weighted`
 *   observers: an iterable of batches, layers in any order. Observers with two passes iterate twice.
 * - A safetensors file of either, opened or not: `input_ids` with or without `attention_mask`, or activations named `<layer>.input` and
 *   `<layer>.output`, in several batches `<layer>.input.0`, `<layer>.input.1` ...
 */
export type Calibration =
  | TokenCalibration
  | Iterable<ActivationBatch>
  | AsyncIterable<ActivationBatch>
  | Model
  | Source;

/** Token ids, C order: `[sequences, length]`, or `[length]` for one sequence. A mask marks padding. */
export interface TokenInput {
  /** Token ids. */
  data: Int32Array | Uint32Array | Uint16Array | BigInt64Array | number[];
  /** `[sequences, length]` or `[length]`. */
  shape: number[];
  /** Which of them are padding, in front of a sequence or behind it. Default: none. */
  mask?: TokenMask;
}

/** An attention mask. Rows of padding only are left out. */
export interface TokenMask {
  /** 1 or true for a token, 0 or false for padding, C order. */
  data: ArrayLike<number | bigint | boolean>;
  /** That of the tokens. */
  shape: number[];
}

/** Sequences of different lengths. */
export interface TokenRows {
  /** Token ids of each sequence, without padding; empty ones are left out. */
  rows: readonly ArrayLike<number | bigint>[];
}

/** Tokenizer output with more than ids. */
export interface Encoding {
  /** Token ids, in order. */
  ids: number[];
}

/** Turns text into token ids: a tokenizer of `@huggingface/tokenizers`, of transformers.js, or your own. */
export interface Tokenizer {
  /** Token ids of a text. */
  encode(text: string, options?: { add_special_tokens?: boolean }): number[] | Encoding;
  /** Used only by `generate`, to return the continuation as text. */
  decode?(ids: number[], options?: { skip_special_tokens?: boolean }): string;
}

/** Text, cut into sequences that each begin with the tokenizer's prefix. */
export interface TextInput {
  /** One text, or several to be joined. */
  text: string | readonly string[];
  /** The model's tokenizer. */
  tokenizer: Tokenizer;
  /** Tokens per sequence; default 256, or the model's maximum if that is less. */
  length?: number;
  /** Maximum number of sequences; default: all that the text fills. */
  sequences?: number;
}

/** What {@link readTextFile} found. */
export interface TextFile {
  /** For {@link TextInput.text}: a list if the file is JSON with several texts. */
  text: string | string[];
  /** How the file was read, in a sentence, where it is not plain text; else null. */
  remark: string | null;
}

/** Options of `importance`. */
export interface ImportanceOptions {
  /** Tokens for language models, or activations of the inputs of any model. */
  calibration: Calibration;
  /** `gguf`, or `dat`, the format of llama.cpp before July 2025. Default `gguf`. */
  format?: 'gguf' | 'dat';
  /** Name of the text, for the file's metadata. */
  dataset?: string;
  /** Cancels. */
  signal?: AbortSignal;
}

/** Options of `evaluate`. */
export interface EvaluateOptions {
  /** Token ids, rows of any lengths, an opened safetensors file of ids (I64, I32 or U16), or text. */
  tokens: TokenInput | TokenRows | Model | TextInput;
  /** The tensor in that file; default `input_ids`, `tokens`, or the only one but `attention_mask`, its mask. */
  tensor?: string;
  /** Average bytes of text per token. Default: counted with the model's tokenizer.json. */
  bytesPerToken?: number;
  /**
   * Precision of the inputs of linear layers. `int8`: quantized per token, as W8A8 runtimes do. `gguf`, for GGUF models:
   * rounded as llama.cpp's CPU kernels do for the type of each weight (blocks of 8 bits, float16 or bfloat16). Default
   * `float32`; for a GGUF model with `against` `gguf`. The inputs of a reference are rounded so, too, if it is GGUF,
   * else they are float32.
   */
  activations?: 'float32' | 'int8' | 'gguf';
  /**
   * The reference, usually the model before it was quantized, opened by the same quantizer; of any format that `evaluate`
   * runs, with the same vocabulary. The result then has `divergence`. Both models share a worker's memory.
   */
  against?: Model;
  /**
   * `all`: every token but the first of its sequence counts. `second-half`: of a sequence of L tokens only those from L / 2 + 1
   * (rounded down) on, and text is cut as llama-perplexity does. Default `all`; with `against` `second-half`. Encoder-decoders read the
   * other tokens first, so the two are the same.
   */
  scored?: 'all' | 'second-half';
  /** Cancels. */
  signal?: AbortSignal;
  /** Every batch of sequences reads all tensors; `count` and `bytesTotal` cover all batches. */
  onProgress?: (progress: Progress) => void;
}

/**
 * How far a model's predictions are from a reference's over the scored tokens, defined as `llama-perplexity --kl-divergence`
 * does. KLD is KL(reference || model) of one token's prediction, in nats; errors are standard errors over tokens.
 */
export interface Divergence {
  /** Mean KLD. */
  meanKld: number;
  /** Standard error of it. */
  meanKldError: number;
  /** Median KLD. */
  medianKld: number;
  /** 99 % of tokens have at most this KLD. */
  kld99: number;
  /** 99.9 % of tokens have at most this KLD. */
  kld999: number;
  /** Largest KLD. */
  maxKld: number;
  /** Share of tokens, 0 to 1, for which both models find the same token the most probable one. */
  sameTop: number;
  /** Standard error of it. */
  sameTopError: number;
  /** Mean of ln(PPL(model) / PPL(reference)). */
  logPerplexityRatio: number;
  /** Standard error of it. */
  logPerplexityRatioError: number;
  /** The reference's perplexity. */
  referencePerplexity: number;
}

/** How well a model predicts the scored tokens. */
export interface Evaluation {
  /** Mean of -log2 p per byte of text; null if the bytes are unknown. */
  bitsPerByte: number | null;
  /** Mean of -log2 p per predicted token. */
  bitsPerToken: number;
  /** 2 to the bits per token. */
  perplexity: number;
  /** Precision of the inputs of linear layers; see {@link EvaluateOptions}. */
  activations: 'float32' | 'int8' | 'gguf';
  /** Which tokens were scored; see {@link EvaluateOptions}. */
  scored: 'all' | 'second-half';
  /** Scored tokens. */
  tokens: number;
  /** Bytes of text in these tokens; special tokens have none. */
  bytes: number | null;
  /** Number of sequences that have tokens. */
  sequences: number;
  /** Tokens of the longest sequence. */
  length: number;
  /** Sum of -ln p over the scored tokens of each sequence, for standard errors of differences between models; 0 where there are none. */
  sequenceLosses: number[];
  /** With `against`: how far the model is from it. */
  divergence?: Divergence;
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Number of workers used. */
  threads: number;
}

/** A prompt, as token ids or as text with a tokenizer. */
export interface GenerateOptions {
  /** Ids of one sequence, including the tokenizer's prefix. */
  tokens?: readonly number[] | Int32Array;
  /** The prompt as text; needs `tokenizer`. */
  text?: string;
  /** The model's tokenizer. With `decode`, the result includes text. */
  tokenizer?: Tokenizer;
  /** Maximum number of tokens to add; default 32. */
  count?: number;
  /** Cancels. */
  signal?: AbortSignal;
  /** Every token uses all tensors; `count` and `bytesTotal` cover all tokens. */
  onProgress?: (progress: Progress) => void;
}

/** A greedy continuation: always the most probable token; on ties the smaller id. */
export interface Generation {
  /** Ids added to the prompt. */
  tokens: number[];
  /** The tokens as text; null without a tokenizer that decodes. */
  text: string | null;
  /** Tokens of the prompt. */
  promptTokens: number;
  /** Why it stopped: `count`, `end` of text (eos_token_id of config.json), or `length`, the model's maximum. */
  stopped: 'count' | 'end' | 'length';
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Number of workers used. */
  threads: number;
}
