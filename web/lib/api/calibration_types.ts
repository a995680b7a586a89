// What a model is run on: token ids, text, activations; and what evaluating it finds.

import type { Model } from './model_types.js';
import type { Progress } from './progress_types.js';
import type { Source } from './source_types.js';
import type { TensorInput } from './tensor_types.js';

/**
 * What algorithms that look at activations see: token ids, `[sequences, length]`, from the model's own tokenizer; 32 × 256
 * tokens of ordinary text are plenty. The model must be of a kind that `evaluate` knows.
 */
export interface TokenCalibration {
  /** Sequences of one length, an opened safetensors file that holds them (I64, I32 or U16), or text. */
  tokens: TokenInput | Model | TextInput;
  /** Tensor of that file; default `input_ids`, `tokens`, or the only one. */
  tensor?: string;
}

/** Values that went into a layer, or came out of it. */
export interface ActivationBatch extends TensorInput {
  /** Name of the layer: that of its weight, without `.weight`. */
  layer: string;
  /** Whether these are inputs or outputs of the layer. */
  role: 'input' | 'output';
}

/** Activations that can be made anew, and fewer of them: what `captureActivations` of `wasmquant/onnxruntime` gives. */
export interface CapturedActivations extends AsyncIterable<ActivationBatch> {
  /** The same for these layers alone; calibration asks for those whose scales it has to find. */
  only(wanted: readonly Pick<ActivationBatch, 'layer' | 'role'>[]): AsyncIterable<ActivationBatch>;
}

/**
 * Data to calibrate with.
 * - Token ids, for algorithms (rotation and cle need none); unless these change what layers read, also for static inputs.
 * - Activations, for static inputs and outputs (`input_tensors`, `output_tensors` without `is_dynamic`) and for observers
 *   with `weighted`: an iterable of batches, in any order of layers. Observers that see data twice iterate twice.
 * - A safetensors file of either, opened or not: `input_ids`, or activations as `<layer>.input` and `<layer>.output`, in
 *   several batches `<layer>.input.0`, `<layer>.input.1` ...
 */
export type Calibration =
  | TokenCalibration
  | Iterable<ActivationBatch>
  | AsyncIterable<ActivationBatch>
  | Model
  | Source;

/** Token ids, C order: `[sequences, length]`, or `[length]` for one sequence. */
export interface TokenInput {
  /** Token ids. */
  data: Int32Array | Uint32Array | Uint16Array | BigInt64Array | number[];
  /** `[sequences, length]` or `[length]`. */
  shape: number[];
}

/** What tokenizers return that tell more than ids. */
export interface Encoding {
  /** Token ids, in order. */
  ids: number[];
}

/** Anything that turns text into token ids: a tokenizer of `@huggingface/tokenizers`, of transformers.js, or your own. */
export interface Tokenizer {
  /** Token ids of a text. */
  encode(text: string, options?: { add_special_tokens?: boolean }): number[] | Encoding;
  /** Only `generate` asks for it, to tell the continuation as text. */
  decode?(ids: number[], options?: { skip_special_tokens?: boolean }): string;
}

/** Text, cut into sequences that each begin with what the tokenizer puts in front of a text. */
export interface TextInput {
  /** One text or several, which are joined. */
  text: string | readonly string[];
  /** The model's tokenizer. */
  tokenizer: Tokenizer;
  /** Tokens of a sequence; default 256, or what the model allows if that is less. */
  length?: number;
  /** At most so many sequences; default: all that the text fills. */
  sequences?: number;
}

/** Options of `importance`. */
export interface ImportanceOptions {
  /** Tokens for Llama-architecture models, or activations of the inputs of any model. */
  calibration: Calibration;
  /** `gguf`, or `dat`, the format of llama.cpp before July 2025. Default `gguf`. */
  format?: 'gguf' | 'dat';
  /** What the text is called, for the file's metadata. */
  dataset?: string;
  /** Cancels. */
  signal?: AbortSignal;
}

/** Options of `evaluate`. */
export interface EvaluateOptions {
  /** Sequences of one length, an opened safetensors file that holds them (I64, I32 or U16), or text. */
  tokens: TokenInput | Model | TextInput;
  /** Tensor of that file; default `input_ids`, `tokens`, or the only one. */
  tensor?: string;
  /** Bytes of text per token on average. Default: counted with the model's tokenizer.json. */
  bytesPerToken?: number;
  /** `int8`: what linear layers multiply is quantized per token first, as W8A8 runtimes do. Default `float32`. */
  activations?: 'float32' | 'int8';
  /** Cancels. */
  signal?: AbortSignal;
  /** Every batch of sequences goes through all tensors; `count` and `bytesTotal` are those of all batches. */
  onProgress?: (progress: Progress) => void;
}

/** How well a model predicts. Every token but the first of its sequence is predicted from those before it. */
export interface Evaluation {
  /** Mean of -log2 p per byte of text; null when the bytes are not known. */
  bitsPerByte: number | null;
  /** Mean of -log2 p per predicted token. */
  bitsPerToken: number;
  /** 2 to the bits per token. */
  perplexity: number;
  /** Predicted tokens. */
  tokens: number;
  /** Bytes of text they stand for; special tokens stand for none. */
  bytes: number | null;
  /** Number of sequences. */
  sequences: number;
  /** Tokens of a sequence. */
  length: number;
  /** Sum of -ln p of each sequence, for standard errors of differences between models. */
  sequenceLosses: number[];
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Workers that took part. */
  threads: number;
}

/** A prompt, as token ids or as text with a tokenizer. */
export interface GenerateOptions {
  /** Ids of one sequence, with what the tokenizer puts in front of a text. */
  tokens?: readonly number[] | Int32Array;
  /** The prompt as text; needs `tokenizer`. */
  text?: string;
  /** Of the model. With `decode` the continuation is told as text, too. */
  tokenizer?: Tokenizer;
  /** Tokens to add at most; default 32. Each goes through the whole model. */
  count?: number;
  /** Cancels. */
  signal?: AbortSignal;
  /** Every token goes through all tensors; `count` and `bytesTotal` are those of all tokens. */
  onProgress?: (progress: Progress) => void;
}

/** The continuation of a prompt. Greedy: always the most probable token; of two equally probable ones, the smaller id. */
export interface Generation {
  /** Ids that were added to the prompt. */
  tokens: number[];
  /** The tokens as text; null without a tokenizer that decodes. */
  text: string | null;
  /** Tokens of the prompt. */
  promptTokens: number;
  /** What ended it: `count`, `end` of text (eos_token_id of config.json), or `length`, the model's longest sequence. */
  stopped: 'count' | 'end' | 'length';
  /** Wall time in milliseconds. */
  durationMs: number;
  /** Workers that took part. */
  threads: number;
}
