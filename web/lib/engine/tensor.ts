// One tensor in memory: argument checks and synchronous engine calls.

import { check, jsonText, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { QuantizationSpec, QuantizedTensor, TensorInput } from '../api/types.js';
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

/** Errors: argument-invalid. */
export function checkSizes(shape: unknown): asserts shape is number[] {
  check(shape, 'list', 'shape');
  const wrong = (shape as unknown[]).findIndex((size) => !isSize(size)); // also finds the gaps of sparse lists
  if (wrong >= 0) throw failure('argument-invalid', 'shape', `has no whole number at index ${wrong}`);
}

function checkShape(shape: unknown, count: number, what: string): asserts shape is number[] {
  checkSizes(shape);
  if (elementsOf(shape) !== count) {
    throw failure(
      'shape-mismatch',
      'shape',
      `[${shape.join(', ')}] has ${elementsOf(shape)} elements, but ${what} has ${count}`,
    );
  }
}

/** Checks a tensor and returns its dtype. Errors: argument-invalid, shape-mismatch. */
export function checkTensor(tensor: TensorInput): 'F32' | 'F16' | 'BF16' {
  check(tensor, 'object', 'tensor');
  const dtype = tensor.dtype ?? 'F32';
  const expected = dtype === 'F32' ? Float32Array : Uint16Array;
  if (dtype !== 'F32' && dtype !== 'F16' && dtype !== 'BF16') {
    throw failure('dtype-unsupported', 'dtype', `${shown(dtype)} is not one of F32, F16, BF16`);
  }
  if (!(tensor.data instanceof expected))
    throw failure('argument-invalid', 'data', `dtype ${dtype} needs a ${expected.name}`);
  checkShape(tensor.shape, tensor.data.length, 'data');
  return dtype;
}

/** A spec as JSON text. Errors: argument-invalid. */
export function specText(spec: QuantizationSpec | QuantizationSpec[]): string {
  if (typeof spec !== 'object' || spec === null)
    throw failure('argument-invalid', 'spec', 'is not an object such as {dtype: "int8"}');
  return jsonText(spec, 'spec');
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
  const dtype = checkTensor(tensor);
  const text = specText(spec);
  return instance.withBytes(tensor.data, (pointer) => {
    const { facts, regions } = instance.parts<QuantizedJson>((module) =>
      module.quantizeTensor(pointer, dtype, JSON.stringify(tensor.shape), text),
    );
    const { codes, scale, zeroPoint, sharedExponents, pairShifts } = regions as Record<'codes' | 'scale', HeapBytes> &
      Record<string, HeapBytes | undefined>;
    const quantized: QuantizedTensor = {
      spec: facts.spec,
      shape: [...tensor.shape],
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
  const dtype = checkTensor(tensor);
  const text = specText(spec);
  return instance.withBytes(tensor.data, (pointer) =>
    instance.floats((module) => module.fakeQuantizeTensor(pointer, dtype, JSON.stringify(tensor.shape), text)),
  );
}

/** The name of a typed array's class; for the core, which knows the one that a spec needs. */
const classOf = (data: unknown) => (ArrayBuffer.isView(data) ? data.constructor.name : null);

export function dequantizeTensor(instance: Instance, quantized: QuantizedTensor): Float32Array {
  check(quantized, 'object', 'quantized');
  const { spec, codes, scale, scaleShape, zeroPoint, pairShifts, secondScale = 1, shape } = quantized;
  const text = specText(spec);
  if (!ArrayBuffer.isView(codes)) throw failure('argument-invalid', 'codes', 'is not a typed array');
  if (!(scale instanceof Float32Array)) throw failure('argument-invalid', 'scale', 'is not a Float32Array');
  if (zeroPoint && !ArrayBuffer.isView(zeroPoint))
    throw failure('argument-invalid', 'zeroPoint', 'is neither a typed array nor null');
  if (pairShifts) check(pairShifts, 'bytes', 'pairShifts');
  check(secondScale, 'number', 'secondScale');
  checkShape(shape, codes.length, 'codes');
  checkShape(scaleShape, scale.length, 'scale');
  if (zeroPoint && zeroPoint.length !== scale.length)
    throw failure('shape-mismatch', 'zeroPoint', `has ${zeroPoint.length} elements, scale has ${scale.length}`);
  const given = JSON.stringify({
    codes: classOf(codes),
    zeroPoint: zeroPoint ? classOf(zeroPoint) : null,
    scaleShape,
    pairShifts: pairShifts?.length ?? 0,
  });
  const optional = <T extends ArrayBufferView, R>(data: T | null | undefined, use: (pointer: number) => R): R =>
    data ? instance.withBytes(data, use) : use(0);
  return instance.withBytes(codes, (codesAt) =>
    instance.withBytes(scale, (scaleAt) =>
      optional(zeroPoint && Float32Array.from(zeroPoint), (zeroPointAt) =>
        optional(pairShifts, (shiftsAt) =>
          instance.floats((module) =>
            module.dequantizeTensor(
              codesAt,
              scaleAt,
              zeroPointAt,
              shiftsAt,
              secondScale,
              JSON.stringify(shape),
              text,
              given,
            ),
          ),
        ),
      ),
    ),
  );
}
