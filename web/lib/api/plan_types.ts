// Plans, made before any weight is read.

import type { Diagnostic } from './diagnostic_types.js';
import type { OutputFormat } from './formats.js';
import type { FileSize } from './model_types.js';
import type { QuantizationSpec } from './tensor_types.js';

/** Why a tensor got its spec. */
export interface Reason {
  /** Kind of the rule that decided. */
  rule:
    | 'excluded'
    | 'default-exclusion'
    | 'layer-name'
    | 'layer-glob'
    | 'layer-type'
    | 'global'
    | 'not-a-weight'
    | 'not-quantizable'
    | 'no-config';
  /** JSON pointer of the deciding key. */
  where: string;
  /** A sentence. */
  text: string;
}

/** A tensor in the output. */
export interface OutputTensor {
  /** Name in the output file. */
  name: string;
  /** Stored dtype, as the output format writes it. */
  dtype: string;
  /** Stored shape; packed dimensions count words. */
  shape: number[];
  /** Size in the file. */
  bytes: number;
  /** The file that contains it. */
  file: string;
}

/** A tensor's plan. */
export interface PlannedTensor {
  /** Tensor name in the model. */
  name: string;
  /** Module name: the tensor name without `.weight` or `.bias`. */
  layer: string;
  /** Class of the layer, such as `Linear`; empty if unknown. */
  layerType: string;
  /** Storage dtype in the model. */
  dtype: string;
  /** Shape in the model. */
  shape: number[];
  /** Quantized, converted to another float type, or copied. */
  action: 'quantize' | 'cast' | 'copy';
  /** The spec; null for tensors that are not quantized. */
  spec: QuantizationSpec | null;
  /** Both specs if there are two stages; `spec` is one of them. */
  stages?: QuantizationSpec[];
  /** Why it got this spec. */
  reason: Reason;
  /** Bytes in the model. */
  bytesBefore: number;
  /** Bytes in the output, scales and zero points included. */
  bytesAfter: number;
  /** Tensors written for it. */
  outputs: OutputTensor[];
}

/**
 * The complete outcome of a run, made before any weight is read. Tensors share spec, reason and shape objects: do not
 * modify them. `planJson` makes its compact JSON.
 */
export interface Plan {
  /** Output format. */
  format: OutputFormat;
  /** Every tensor of the model, in file order. */
  tensors: PlannedTensor[];
  /** Files that a run writes, with their sizes in bytes. ONNX files are in `onnx/` if the run writes a folder by path; a plan without a run says so for
   * models that are in such a folder themselves. */
  files: FileSize[];
  /** Sums over all tensors. */
  totals: Totals;
  /** Warnings and notes about config and model. */
  diagnostics: Diagnostic[];
  /** The quantization block for config.json; null if the format needs none. */
  quantizationConfig: Record<string, unknown> | null;
}

/** An output as JSON. */
export interface PlannedOutputJson extends Omit<OutputTensor, 'name' | 'file'> {
  /** The name after the layer; outputs with a suffix are in `PlanJson.outputs`. */
  suffix?: string;
  /** The whole name if it does not begin with the layer. */
  name?: string;
  /** Index into `PlanJson.files`. */
  file: number;
}

/** A planned tensor as JSON. Shared values are indexes into lists of the document. */
export interface PlannedTensorJson extends Omit<PlannedTensor, 'layer' | 'spec' | 'stages' | 'reason' | 'outputs'> {
  /** Module name, if not the tensor name without `.weight` or `.bias`. */
  layer?: string;
  /** Index into `PlanJson.specs`; null for tensors that are not quantized. */
  spec: number | null;
  /** Indexes into `PlanJson.specs`, if there are two stages. */
  stages?: number[];
  /** Index into `PlanJson.reasons`. */
  reason: number;
  /** Indexes into `PlanJson.outputs`, or unshared outputs. */
  outputs: (number | PlannedOutputJson)[];
}

/** A plan as JSON, as printed by `wasmquant plan --json`. `planOf` reads it. */
export interface PlanJson extends Omit<Plan, 'tensors'> {
  /** Specs, referenced by index. */
  specs: QuantizationSpec[];
  /** Reasons, referenced by index. */
  reasons: Reason[];
  /** Outputs, referenced by index. */
  outputs: PlannedOutputJson[];
  /** Every tensor of the model, in file order. */
  tensors: PlannedTensorJson[];
}

/** Sums over a plan or report: tensors, and sizes of whole files. */
export interface Totals {
  /** Number of tensors. */
  tensors: number;
  /** Number of quantized tensors. */
  quantized: number;
  /** Bytes of the model's weight files: tensors, headers, graph, tokenizer of a GGUF file, everything in them. */
  bytesBefore: number;
  /** Bytes of the weight files that are written, likewise: the sum over `Plan.files`. Small files of a folder, such as
   * config.json, are not counted. */
  bytesAfter: number;
  /** Bits per element of the quantized weights, including scales and zero points. */
  bitsPerWeight: number;
  /** How much of the model is quantized, and why the rest is not. */
  coverage: Coverage;
}

/** How much of a model is quantized, in source elements (parameters) and source bytes. */
export interface Coverage {
  /** Elements of all tensors. */
  parameters: number;
  /** Elements of quantized tensors. */
  quantizedParameters: number;
  /** Bytes of all tensors. */
  bytes: number;
  /** Source bytes of quantized tensors. */
  quantizedBytes: number;
  /** What is not quantized, one row per reason, largest first. */
  left: LeftTensors[];
}

/** Tensors not quantized for the same reason. */
export interface LeftTensors {
  /** Kind of the rule. */
  rule: Reason['rule'];
  /** The reason, as a sentence. */
  text: string;
  /** Number of tensors. */
  tensors: number;
  /** Their elements. */
  parameters: number;
  /** Their bytes in the model. */
  bytes: number;
}
