// The inputs an ONNX graph declares.

import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { OpenedModel } from './model.js';

/** An input of an ONNX model. */
export interface ModelInput {
  name: string;
  /** ONNX Runtime's name of the element type (`float32`, `int64` ...); `''` if undeclared. */
  type: string;
  /** Sizes; for dynamic ones the name or null. Null if undeclared. */
  shape: (number | string | null)[] | null;
  /** Whether it has a default and may be omitted. */
  optional: boolean;
}

export interface LayerValues {
  layers: { layer: string; input: string; output: string; nested: boolean }[];
  /** type: TensorProto.DataType; sizes below 0 are dynamic. */
  inputs: { name: string; type: number; shape?: (number | string)[]; optional: boolean }[];
  outputs: string[];
  /** External data files, in order after the model's own. */
  locations: string[];
}

/** ONNX Runtime's names by TensorProto.DataType; JavaScript cannot feed bfloat16 and smaller types. */
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

/** Errors: format-unsupported if the model is not ONNX. */
export function layerValuesOf(model: OpenedModel): LayerValues {
  if (!formats.inputs[model.format].hasGraph)
    throw failure('format-unsupported', model.name, `is ${model.format}; only ONNX models have a graph to run`);
  return JSON.parse(model.indexFor().layerValues()) as LayerValues;
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
