/// <reference lib="esnext.disposable" preserve="true" />
// An opened model.

import type { Diagnostic } from './diagnostic_types.js';
import type { InputFormat } from './formats.js';

/** One tensor of an opened model. Offsets are absolute bytes of its file, end exclusive. */
export interface TensorInfo {
  /** Tensor name. */
  name: string;
  /** Storage dtype, named as in safetensors. */
  dtype: string;
  /** Shape in C order. */
  shape: number[];
  /** Stored bytes. */
  bytes: number;
  /** File that contains it. */
  file: string;
  /** First byte in that file. */
  begin: number;
  /** End of its bytes, exclusive. */
  end: number;
  /** Module name: the tensor name without `.weight` or `.bias`. */
  layer: string;
  /** Inferred class: `Linear`, `Embedding`, `Conv1d`, `Conv2d`, `Norm`, `ConvTranspose2d`, `LSTM` ...; `` if unknown.
   */
  layerType: string;
}

/** A file and its size. */
export interface FileSize {
  /** Path inside the model's folder, with `/`. */
  name: string;
  /** Size in bytes. */
  bytes: number;
}

/** An opened model. Close it (or `await using`) to release files. */
export interface Model extends AsyncDisposable {
  /** Format of the files. */
  format: InputFormat;
  /** Every file of the model, in order. */
  files: FileSize[];
  /** Bytes of the files where they lie: arrays that are compressed in an archive count as such. */
  bytes: number;
  /** Every tensor, in file order. Tensors share shape objects: do not modify them. */
  tensors: TensorInfo[];
  /** Metadata of the file headers. */
  metadata: Record<string, string>;
  /** config.json next to the weights, or null. As in Python, `Infinity` and `NaN` are numbers; the last duplicate wins.
   */
  config: Record<string, unknown> | null;
  /** Remarks on the files, such as tensors missing in the index. */
  diagnostics: Diagnostic[];
  /** A small file next to the weights, such as `tokenizer.json`, or null. Of a GGUF file `tokenizer.json` and `tokenizer_config.json`
   * are made from its metadata, where it has a tokenizer of the kinds gpt2, llama or bert. Errors: file-too-large (over 64 MiB). */
  siblingFile(name: string): Promise<Uint8Array | null>;
  /** Of an ONNX model in parts, such as encoder and decoder: the other graphs. A run of this model into a folder writes
   * them all; plans, and runs into a single file, are only of this graph. Closed with it. */
  parts: readonly Model[];
  /** Releases the files; the model cannot be used afterwards. */
  close(): Promise<void>;
}
