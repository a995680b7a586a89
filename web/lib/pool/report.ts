// Errors of tensors from their sums, remarks on errors, and totals of reports.

import type { PlanRow } from '../api/plan_json.js';
import type { Coverage, Diagnostic, TensorError, TensorReport, Totals } from '../api/types.js';
import { sumsPerUnit } from '../engine/replies.js';

/** Below this, noise has at least a third of the weights' energy. */
const lowestSqnrDb = 5;

/** Running sums of one tensor. Units are added in order, so the result does not depend on who computed them. */
export class ErrorSums {
  #xx = 0;
  #yy = 0;
  #dd = 0;
  #maxAbs = 0;
  #count = 0;
  #lostX = 0;
  #lostY = 0;

  /** Adds units × 7 float64 (`sumsPerUnit`). */
  add(units: Float64Array): void {
    for (let at = 0; at + sumsPerUnit <= units.length; at += sumsPerUnit) {
      const [xx = 0, yy = 0, dd = 0, maxAbs = 0, count = 0, lostX = 0, lostY = 0] = units.subarray(
        at,
        at + sumsPerUnit,
      );
      this.#xx += xx;
      this.#yy += yy;
      this.#dd += dd;
      this.#maxAbs = Math.max(this.#maxAbs, maxAbs);
      this.#count += count;
      this.#lostX += lostX;
      this.#lostY += lostY;
    }
  }

  result(): TensorError | null {
    if (this.#lostX + this.#lostY > 0) return infiniteError({ reference: this.#lostX, quantized: this.#lostY });
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

export function infiniteError(nonFinite: { reference: number; quantized: number }): TensorError {
  const infinite = Number.POSITIVE_INFINITY;
  return { sqnrDb: -infinite, mse: infinite, maxAbs: infinite, cosine: Number.NaN, nonFinite };
}

/** Σxy = (Σx² + Σy² − Σ(x−y)²) / 2. Two zero vectors count as parallel. */
function cosineOf(xx: number, yy: number, dd: number): number {
  if (dd === 0) return 1;
  if (xx === 0 || yy === 0) return 0;
  return Math.max(-1, Math.min(1, (xx + yy - dd) / 2 / Math.sqrt(xx * yy)));
}

/** What a run found out about a tensor. */
export type Outcome = Pick<TensorReport, 'error' | 'calibration'>;

/** A planned tensor with its outcome instead of its outputs: the same object if it has none. Not a spread with a rest:
 * those objects are dictionaries, of half a kilobyte each. */
export function tensorReport(tensor: PlanRow, { error, calibration }: Outcome): TensorReport {
  if (tensor.outputs === undefined) return Object.assign(tensor, { error, ...(calibration && { calibration }) });
  const { name, layer, layerType, dtype, shape, action, spec, stages, reason, bytesBefore, bytesAfter } = tensor;
  return {
    name,
    layer,
    layerType,
    dtype,
    shape,
    action,
    spec,
    ...(stages && { stages }),
    reason,
    bytesBefore,
    bytesAfter,
    error,
    ...(calibration && { calibration }),
  };
}

export function nonFiniteRemarks(tensors: readonly TensorReport[]): Diagnostic[] {
  const values = (count: number) => `${count} ${count === 1 ? 'value' : 'values'}`;
  return tensors.flatMap(({ name, error }): Diagnostic[] => {
    if (!error?.nonFinite) return [];
    const { reference, quantized } = error.nonFinite;
    const message = `${values(reference)} of the reference and ${values(quantized)} of the quantized weight are NaN or infinite, so that its error is infinite`;
    const hint = 'fix the checkpoint, or exclude the layer';
    return [{ severity: 'warning', code: 'value-not-finite', where: name, message, hint }];
  });
}

/** nonFiniteRemarks, and warnings about weights with a very low SQNR. */
export function errorRemarks(tensors: readonly TensorReport[]): Diagnostic[] {
  const low = tensors.flatMap(({ name, error }): Diagnostic[] => {
    if (!error || error.nonFinite || !(error.sqnrDb < lowestSqnrDb)) return [];
    const message = `keeps an SQNR of only ${Math.floor(error.sqnrDb)} dB, rounded down`;
    const hint = 'give it more bits or another dtype, or exclude it';
    return [{ severity: 'warning', code: 'sqnr-low', where: name, message, hint }];
  });
  return [...nonFiniteRemarks(tensors), ...low];
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

/** Totals of some tensors, with the sizes of their files before and after. */
export function totalsOf(
  tensors: TensorReport[],
  { bytesBefore, bytesAfter }: Pick<Totals, 'bytesBefore' | 'bytesAfter'>,
): Totals {
  const quantized = tensors.filter((tensor) => tensor.action === 'quantize');
  const sum = (list: TensorReport[], of: (tensor: TensorReport) => number) =>
    list.reduce((total, tensor) => total + of(tensor), 0);
  const elements = sum(quantized, elementsOf);
  return {
    tensors: tensors.length,
    quantized: quantized.length,
    bytesBefore,
    bytesAfter,
    bitsPerWeight: elements === 0 ? 0 : (8 * sum(quantized, (tensor) => tensor.bytesAfter)) / elements,
    coverage: coverageOf(tensors),
  };
}
