// Error of a tensor from its sums, and the totals of a report.

import { sumsPerUnit } from './protocol.js';
import type { Coverage, PlannedTensor, TensorError, TensorReport, Totals } from './types.js';

/** Running sums of one tensor. Units are added in their order, so the last bit does not depend on who computed them. */
export class ErrorSums {
  #xx = 0;
  #yy = 0;
  #dd = 0;
  #maxAbs = 0;
  #count = 0;

  /** Adds units × 5 float64: Σx², Σy², Σ(x−y)², max|x−y|, count. */
  add(units: Float64Array): void {
    for (let at = 0; at + sumsPerUnit <= units.length; at += sumsPerUnit) {
      const [xx = 0, yy = 0, dd = 0, maxAbs = 0, count = 0] = units.subarray(at, at + sumsPerUnit);
      this.#xx += xx;
      this.#yy += yy;
      this.#dd += dd;
      this.#maxAbs = Math.max(this.#maxAbs, maxAbs);
      this.#count += count;
    }
  }

  /** Null when nothing was compared. */
  result(): TensorError | null {
    if (this.#count === 0) return null;
    const [xx, yy, dd] = [this.#xx, this.#yy, this.#dd];
    return {
      sqnrDb: dd === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10(xx / dd),
      mse: dd / this.#count,
      maxAbs: this.#maxAbs,
      cosine: cosineOf(xx, yy, dd),
    };
  }
}

/** Σxy = (Σx² + Σy² − Σ(x−y)²) / 2. Two zero vectors count as parallel. */
function cosineOf(xx: number, yy: number, dd: number): number {
  if (dd === 0) return 1;
  if (xx === 0 || yy === 0) return 0;
  return Math.max(-1, Math.min(1, (xx + yy - dd) / 2 / Math.sqrt(xx * yy)));
}

/** A planned tensor without its outputs, with its error. */
export function tensorReport(tensor: PlannedTensor, error: TensorError | null): TensorReport {
  const { outputs: _, ...rest } = tensor;
  return { ...rest, error };
}

const elementsOf = ({ shape }: TensorReport) => shape.reduce((product, size) => product * size, 1);

function coverageOf(tensors: TensorReport[]): Coverage {
  const coverage: Coverage = { parameters: 0, quantizedParameters: 0, bytes: 0, quantizedBytes: 0, left: [] };
  for (const tensor of tensors) {
    const [parameters, bytes] = [elementsOf(tensor), tensor.bytesBefore];
    coverage.parameters += parameters;
    coverage.bytes += bytes;
    if (tensor.action === 'quantize') {
      coverage.quantizedParameters += parameters;
      coverage.quantizedBytes += bytes;
      continue;
    }
    const { rule, text } = tensor.reason;
    const known = coverage.left.find((left) => left.rule === rule && left.text === text);
    const left = known ?? { rule, text, tensors: 0, parameters: 0, bytes: 0 };
    if (!known) coverage.left.push(left);
    left.tensors += 1;
    left.parameters += parameters;
    left.bytes += bytes;
  }
  coverage.left.sort((a, b) => b.bytes - a.bytes);
  return coverage;
}

/** Totals of a comparison: sizes of both models and bits per element of what is quantized. */
export function totalsOf(tensors: TensorReport[]): Totals {
  const quantized = tensors.filter((tensor) => tensor.action === 'quantize');
  const sum = (list: TensorReport[], of: (tensor: TensorReport) => number) =>
    list.reduce((total, tensor) => total + of(tensor), 0);
  const elements = sum(quantized, elementsOf);
  return {
    tensors: tensors.length,
    quantized: quantized.length,
    bytesBefore: sum(tensors, (tensor) => tensor.bytesBefore),
    bytesAfter: sum(tensors, (tensor) => tensor.bytesAfter),
    bitsPerWeight: elements === 0 ? 0 : (8 * sum(quantized, (tensor) => tensor.bytesAfter)) / elements,
    coverage: coverageOf(tensors),
  };
}
