// What an ONNX model is fed: its inputs as the graph declares them.

import { failure } from '../api/errors.js';
import type { OpenedModel } from './model.js';

/** An input of an ONNX model. */
export interface ModelInput {
  name: string;
  /** Of its elements, as ONNX Runtime names it (`float32`, `int64` ...); `''` when the model does not say. */
  type: string;
  /** Sizes; where one is known only when the model runs its name, or null. Null when the model does not say. */
  shape: (number | string | null)[] | null;
  /** Whether it has a default, so that feeds may leave it out. */
  optional: boolean;
}

/** What the core says of a model. */
export interface LayerValues {
  layers: { layer: string; input: string; output: string; nested: boolean }[];
  /** type: number of TensorProto.DataType; sizes below 0 are open. */
  inputs: { name: string; type: number; shape?: (number | string)[]; optional: boolean }[];
  outputs: string[];
  /** Files with external data, as they follow the model's own. */
  locations: string[];
}

/** Names of ONNX Runtime by TensorProto.DataType; bfloat16 and smaller types cannot be fed from JavaScript. */
const typeNames: Record<number, string> = {
  1: 'float32',
  2: 'uint8',
  3: 'int8',
  4: 'uint16',
  5: 'int16',
  6: 'int32',
  7: 'int64',
  8: 'string',
  9: 'bool',
  10: 'float16',
  11: 'float64',
  12: 'uint32',
  13: 'uint64',
  16: 'bfloat16',
};

/** Errors: format-unsupported: a model of another format. */
export function layerValuesOf(model: OpenedModel): LayerValues {
  const { ok } = JSON.parse(model.indexFor().layerValues()) as { ok?: LayerValues };
  if (!ok) throw failure('format-unsupported', model.name, `is ${model.format}; ONNX Runtime runs ONNX models`);
  return ok;
}

export function inputsOf(model: OpenedModel): ModelInput[] {
  const size = (given: number | string) => (typeof given === 'number' && given < 0 ? null : given);
  return layerValuesOf(model).inputs.map(({ name, type, shape, optional }) => ({
    name,
    type: typeNames[type] ?? '',
    shape: shape?.map(size) ?? null,
    optional,
  }));
}

/** `float32 [1, 3, height, ?]` */
export function inputText({ type, shape }: Pick<ModelInput, 'type' | 'shape'>): string {
  return [type, shape && `[${shape.map((size) => size ?? '?').join(', ')}]`].filter(Boolean).join(' ');
}
