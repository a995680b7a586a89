// An opened model.

import type { Diagnostic } from './diagnostic_types.js';
import type { InputFormat } from './source_types.js';

/** One tensor of an opened model. Offsets are absolute bytes of its file, end exclusive. */
export interface TensorInfo {
  name: string;
  /** Storage dtype name as safetensors spells it. */
  dtype: string;
  shape: number[];
  bytes: number;
  file: string;
  begin: number;
  end: number;
  /** Module the tensor belongs to: the name without `.weight` or `.bias`. */
  layer: string;
  /** Inferred class: `Linear`, `Embedding`, `Conv1d`, `Conv2d`, `Norm`, of ONNX also `ConvTranspose2d`, `LSTM` ...; `` when unknown. */
  layerType: string;
}

/** An opened model. Close it (or `await using`) to release files. */
export interface Model extends AsyncDisposable {
  format: InputFormat;
  /** Every file of the model, in order. */
  files: { name: string; bytes: number }[];
  tensors: TensorInfo[];
  metadata: Record<string, string>;
  /** config.json beside the weights; null when there is none. As in Python, `Infinity` and `NaN` are numbers, and of members of one name the last counts. */
  config: Record<string, unknown> | null;
  /** Remarks on the files, such as tensors that an index does not mention. */
  diagnostics: Diagnostic[];
  /** A small file beside the weights, such as `tokenizer.json`; null when there is none of that name. */
  companion(name: string): Promise<Uint8Array | null>;
  close(): Promise<void>;
}
