// Errors of weights: of a few of them for estimates, of all where nothing else can be measured.

import type { Plan, TensorReport } from '../api/types.js';

/** Tensors that an estimate looks at. */
const sampled = 6;
const sampledElements = 4 * 2 ** 20;

const elementsOf = ({ shape }: { shape: readonly number[] }) => shape.reduce((product, extent) => product * extent, 1);

export const quantizedNames = (plan: Plan) =>
  plan.tensors.filter(({ action }) => action === 'quantize').map(({ name }) => name);

/** Some weights, spread over the model, none of them large. */
export function sampleNames(plan: Plan): string[] {
  const fitting = plan.tensors.filter(
    (tensor) => tensor.action === 'quantize' && elementsOf(tensor) <= sampledElements,
  );
  const step = Math.max(1, fitting.length / sampled);
  return Array.from({ length: Math.min(sampled, fitting.length) }, (_, i) => fitting[Math.floor((i + 0.5) * step)])
    .flatMap((tensor) => tensor ?? [])
    .map(({ name }) => name);
}

/** Root of the mean of their squared relative errors, by elements. `others`: elements without error. */
export function relativeError(tensors: readonly TensorReport[], others = 0): number {
  let [sum, count] = [0, others];
  for (const tensor of tensors) {
    const elements = elementsOf(tensor);
    count += elements;
    if (tensor.error) sum += elements * 10 ** (-tensor.error.sqnrDb / 10);
  }
  return count === 0 ? 0 : Math.sqrt(sum / count);
}

/** Elements that a plan leaves. */
export const leftElements = ({ totals: { coverage } }: Plan) => coverage.parameters - coverage.quantizedParameters;
