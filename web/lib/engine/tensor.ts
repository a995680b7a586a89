// One tensor in memory: argument checks and synchronous engine calls.

import { check, jsonText, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { QuantizationSpec, QuantizedTensor, TensorInput } from '../api/types.js';
import { arrayOf, plainOf } from '../api/values.js';
import type { Instance } from './instance.js';
import type { HeapBytes } from './module.js';

/** Comes with `codes`, `scale`, and, if the spec has them, `zeroPoint`, `sharedExponents` and `pairShifts`. */
interface QuantizedJson {
  spec: QuantizationSpec | QuantizationSpec[];
  codeBytes: number;
  signedCodes: boolean;
  scaleShape: number[];
  zeroPointType: 'int32' | 'float32';
  secondScale?: number;
}

export const elementsOf = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);

const isSize = (size: unknown) => Number.isSafeInteger(size) && (size as number) >= 0;

/** A copy of a shape. Errors: argument-invalid. */
export function sizesOf(shape: unknown): number[] {
  const sizes = check(plainOf(shape, 'shape'), 'list', 'shape') as unknown[];
  const wrong = sizes.findIndex((size) => !isSize(size));
  if (wrong >= 0) throw failure('argument-invalid', 'shape', `has no whole number at index ${wrong}`);
  return sizes as number[];
}

function shapeOf(given: unknown, count: number, what: string): number[] {
  const shape = sizesOf(given);
  if (elementsOf(shape) === count) return shape;
  throw failure(
    'shape-mismatch',
    'shape',
    `[${shape.join(', ')}] has ${elementsOf(shape)} elements, but ${what} has ${count}`,
  );
}

/** A tensor, read once. */
export interface ReadTensor {
  dtype: 'F32' | 'F16' | 'BF16';
  bytes: Uint8Array<ArrayBuffer>;
  elements: number;
  shape: number[];
}

/** Errors: argument-invalid, shape-mismatch, dtype-unsupported. */
export function readTensor(tensor: TensorInput): ReadTensor {
  const { dtype = 'F32', data, shape } = check(tensor, 'object', 'tensor');
  for (const key of ['data', 'shape'])
    if (Object.getOwnPropertyDescriptor(tensor, key)?.get)
      throw failure(
        'argument-invalid',
        key,
        'is a getter of its own, which may give something else each time; give the value',
      );
  if (dtype !== 'F32' && dtype !== 'F16' && dtype !== 'BF16')
    throw failure('dtype-unsupported', 'dtype', `${shown(dtype)} is not one of F32, F16, BF16`);
  const { length, bytes } = arrayOf(data, 'data', dtype === 'F32' ? 'Float32Array' : 'Uint16Array');
  return { dtype, bytes, elements: length, shape: shapeOf(shape, length, 'data') };
}

/** A spec as JSON text. Errors: argument-invalid. */
export function specText(spec: QuantizationSpec | QuantizationSpec[]): string {
  if (typeof spec !== 'object' || spec === null)
    throw failure('argument-invalid', 'spec', 'is not an object such as {dtype: "int8"}');
  return jsonText(spec, 'spec', '');
}

function codesOf(
  instance: Instance,
  { pointer, bytes }: HeapBytes,
  { codeBytes, signedCodes }: QuantizedJson,
): QuantizedTensor['codes'] {
  const { buffer } = instance.copyOut(pointer, bytes);
  if (codeBytes === 1) return signedCodes ? new Int8Array(buffer) : new Uint8Array(buffer);
  if (codeBytes === 2) return signedCodes ? new Int16Array(buffer) : new Uint16Array(buffer);
  return new Int32Array(buffer);
}

/** Zero points, which the core returns as float32 for either type. */
export function zeroPoints(
  instance: Instance,
  region: HeapBytes | undefined,
  type: 'int32' | 'float32',
): Int32Array | Float32Array | null {
  if (!region) return null;
  const values = instance.float32(region);
  return type === 'int32' ? Int32Array.from(values) : values;
}

export function quantizeTensor(
  instance: Instance,
  tensor: TensorInput,
  spec: QuantizationSpec | QuantizationSpec[],
): QuantizedTensor {
  const text = specText(spec);
  const { dtype, bytes, shape } = readTensor(tensor);
  return instance.withBytes(bytes, (pointer) => {
    const { facts, regions } = instance.parts<QuantizedJson>((module) =>
      module.quantizeTensor(pointer, dtype, JSON.stringify(shape), text),
    );
    const { codes, scale, zeroPoint, sharedExponents, pairShifts } = regions as Record<'codes' | 'scale', HeapBytes> &
      Record<string, HeapBytes | undefined>;
    const quantized: QuantizedTensor = {
      spec: facts.spec,
      shape,
      codes: codesOf(instance, codes, facts),
      scale: instance.float32(scale),
      scaleShape: facts.scaleShape,
      zeroPoint: zeroPoints(instance, zeroPoint, facts.zeroPointType),
    };
    const copied = ({ pointer, bytes }: HeapBytes) => instance.copyOut(pointer, bytes);
    if (sharedExponents) quantized.sharedExponents = copied(sharedExponents);
    if (pairShifts) quantized.pairShifts = copied(pairShifts);
    if (facts.secondScale !== undefined) quantized.secondScale = facts.secondScale;
    return quantized;
  });
}

export function fakeQuantizeTensor(
  instance: Instance,
  tensor: TensorInput,
  spec: QuantizationSpec | QuantizationSpec[],
): Float32Array {
  const text = specText(spec);
  const { dtype, bytes, shape } = readTensor(tensor);
  return instance.withBytes(bytes, (pointer) =>
    instance.floats((module) => module.fakeQuantizeTensor(pointer, dtype, JSON.stringify(shape), text)),
  );
}

export function dequantizeTensor(instance: Instance, quantized: QuantizedTensor): Float32Array {
  const given = check(quantized, 'object', 'quantized');
  const { spec, codes: codesGiven, scale: scaleGiven, zeroPoint: zeros, pairShifts: shifts, secondScale = 1 } = given;
  const text = specText(spec);
  const [codes, scale] = [arrayOf(codesGiven, 'codes'), arrayOf(scaleGiven, 'scale', 'Float32Array')];
  const zeroPoint = zeros && { name: arrayOf(zeros, 'zeroPoint').name, bytes: Float32Array.from(zeros, Number) };
  const pairShifts = shifts && check(shifts, 'bytes', 'pairShifts');
  check(secondScale, 'number', 'secondScale');
  const shape = JSON.stringify(shapeOf(given.shape, codes.length, 'codes'));
  const scaleShape = shapeOf(given.scaleShape, scale.length, 'scale');
  if (zeroPoint && zeroPoint.bytes.length !== scale.length)
    throw failure('shape-mismatch', 'zeroPoint', `has ${zeroPoint.bytes.length} elements, scale has ${scale.length}`);
  const told = JSON.stringify({
    codes: codes.name,
    zeroPoint: zeroPoint ? zeroPoint.name : null,
    scaleShape,
    pairShifts: pairShifts?.length ?? 0,
  });
  const optional = <R>(data: ArrayBufferView | null | undefined, use: (pointer: number) => R): R =>
    data ? instance.withBytes(data, use) : use(0);
  return instance.withBytes(codes.bytes, (codesAt) =>
    instance.withBytes(scale.bytes, (scaleAt) =>
      optional(zeroPoint?.bytes, (zeroPointAt) =>
        optional(pairShifts, (shiftsAt) =>
          instance.floats((module) =>
            module.dequantizeTensor(codesAt, scaleAt, zeroPointAt, shiftsAt, secondScale, shape, text, told),
          ),
        ),
      ),
    ),
  );
}
