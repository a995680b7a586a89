// Size of the file against loss: plans all schemes, estimates them from a few weights, then writes and measures one after another.

import { checkedWith, jsonText } from '../api/arguments.js';
import { failure, QuantizationError } from '../api/errors.js';
import type { Curve, CurveOptions, CurvePoint } from '../api/types.js';
import type { Host, Scratch } from '../host/host.js';
import { abortable } from '../io/abort.js';
import type { OpenedModel } from '../model/model.js';
import { speedOf, spreadOf, type TurnTimes } from '../model/onnx_speed.js';
import { withPlan } from '../plan/plan.js';
import type { RunResources } from '../pool/run_resources.js';
import { previewTensors } from '../run/preview.js';
import { quantizeInto } from '../run/quantize_model.js';
import { curveOptions } from './curve_kinds.js';
import { type Found, type Judge, judgeFor } from './losses.js';
import { type Scheme, schemesOf } from './schemes.js';
import { estimate, markFrontier, undecidedPairs } from './shape.js';
import { leftElements, quantizedNames, relativeError, sampleNames } from './weights.js';

/** Outputs are kept for another round if all of them have no more bytes; else they are made again. */
const keptBytes = 512 * 2 ** 20;

/** The quantizer's means. */
export interface CurveMeans {
  resources: RunResources;
  host: Host;
}

interface Written {
  model: OpenedModel;
  remove(): Promise<void>;
}

async function written(
  { resources, host }: CurveMeans,
  model: OpenedModel,
  { config, format }: Scheme,
  { signal }: CurveOptions,
): Promise<Written> {
  const scratch: Scratch = await host.scratch();
  try {
    const target = await host.openTarget(scratch.target, false, [], { resumes: false, isShared: false, adds: false });
    const options = { target: scratch.target, format, ...(signal && { signal }) };
    const { files } = await quantizeInto(resources, model, jsonText(config, 'schemes'), target, options);
    const output = (await abortable(
      signal,
      resources.open(scratch.source(files.map(({ name }) => name))),
    )) as OpenedModel;
    const remove = async () => {
      await output.close();
      await scratch.remove();
    };
    return { model: output, remove };
  } catch (error) {
    await scratch.remove();
    throw error;
  }
}

export async function curveOf(
  means: CurveMeans,
  model: OpenedModel,
  given: CurveOptions,
  runSignal?: AbortSignal,
): Promise<Curve> {
  const options = checkedWith(given, curveOptions, runSignal);
  const { resources } = means;
  const { signal, onPoint } = options;
  signal?.throwIfAborted();
  const schemes = schemesOf(model, options, (config, format) =>
    withPlan(
      resources.instance,
      model,
      jsonText(config, 'schemes'),
      { format },
      { ...resources.memory.tiles, namesOutputs: false },
      (_, plan) => plan,
    ),
  );
  const { judge, reason } = await judgeFor(resources, model, options);
  const curve: Curve = {
    metric: {
      kind: judge?.kind ?? 'weight-error',
      name: judge?.name ?? 'relative error of weights',
      ...(reason && { reason }),
    },
    original: { bytes: model.bytes, loss: judge?.measuresOriginal ? null : 0 },
    points: schemes.map(({ scheme, format, plan }) => ({
      scheme,
      format,
      bytes: plan.totals.bytesAfter,
      loss: null,
      measured: false,
      onFrontier: false,
    })),
    undecided: [],
  };
  const tell = (point: CurvePoint) => {
    markFrontier(curve);
    onPoint?.({ ...point }, structuredClone(curve));
  };
  for (const point of curve.points) tell(point);
  const errors: number[] = [];
  for (const { config, format, plan } of schemes) {
    const names = judge ? sampleNames(plan) : quantizedNames(plan);
    const how = { format, ...(signal && { signal }) };
    const tried = await previewTensors(resources, model, jsonText(config, 'schemes'), names, how);
    const { parameters, quantizedParameters } = plan.totals.coverage;
    const share = judge ? Math.sqrt(quantizedParameters / Math.max(1, parameters)) : 1;
    const error = share * relativeError(tried, judge ? 0 : leftElements(plan));
    const point = curve.points[errors.push(error) - 1] as CurvePoint;
    if (judge) continue;
    setMeasured(point, { samples: [], loss: error });
    tell(point);
  }
  if (judge) await measureAll(means, model, options, { schemes, judge, curve, errors, tell });
  markFrontier(curve);
  return curve;
}

/** Notes what was found. A loss that is NaN or infinite is no figure: it is greater than no other, and less than none. */
function setMeasured(point: CurvePoint, { loss, error }: Found): boolean {
  const isFigure = Number.isFinite(loss);
  const reason = `its loss is ${loss}: it has NaN or infinite values where the original has none, or values where that has only zeros`;
  Object.assign(point, { loss: isFigure ? loss : null, measured: isFigure });
  if (!isFigure) Object.assign(point, { reason });
  else if (Number.isFinite(error)) Object.assign(point, { error });
  return isFigure;
}

interface Measuring {
  schemes: readonly Scheme[];
  judge: Judge;
  curve: Curve;
  /** Of sampled weights, by scheme; NaN if nothing can be told from them. */
  errors: number[];
  tell: (point: CurvePoint) => void;
}

/** Measures in rounds until the order is safe. Errors: those of the original; a scheme that cannot be measured says why. */
async function measureAll(
  means: CurveMeans,
  model: OpenedModel,
  options: CurveOptions,
  { schemes, judge, curve, errors, tell }: Measuring,
): Promise<void> {
  // The worst and the best first: the others are estimated between them.
  const order = schemes.map((_, i) => i).sort((a, b) => (errors[b] ?? 0) - (errors[a] ?? 0) || 0);
  if (order.length > 2) order.splice(1, 0, order.pop() as number);
  const keeps = curve.points.reduce((sum, { bytes }) => sum + bytes, 0) <= keptBytes;
  const kept = new Map<number, Written>();
  const found = new Map<number, Found>();
  let ran = false;
  let original: Found | null = null;
  const originalTimes: number[] = [];
  const setSpeed = (i: number, times: TurnTimes) => {
    originalTimes.push(...times.original);
    curve.original.milliseconds = spreadOf(originalTimes);
    (curve.points[i] as CurvePoint).speed = speedOf(times);
  };
  const measured = async (i: number, first: number, last: number) => {
    const output = kept.get(i) ?? (await written(means, model, schemes[i] as Scheme, options));
    try {
      const result = await judge.measure(output.model, first, last, found.get(i) ?? null, original);
      if (judge.time) setSpeed(i, await judge.time(output.model));
      return result;
    } finally {
      if (keeps && judge.rounds.at(-1) !== last) kept.set(i, output);
      else {
        kept.delete(i);
        await output.remove();
      }
    }
  };
  try {
    let first = 0;
    for (const last of judge.rounds) {
      if (judge.measuresOriginal) {
        original = await judge.measure(model, first, last, original, null);
        if (!Number.isFinite(original.loss))
          throw failure(
            'value-not-finite',
            model.name,
            `has a loss of ${original.loss}, with which nothing can be compared`,
          );
        curve.original.loss = original.loss;
      }
      for (const i of order) {
        const point = curve.points[i] as CurvePoint;
        if (point.reason !== undefined) continue;
        try {
          const result = await measured(i, first, last);
          ran = true;
          if (setMeasured(point, result)) found.set(i, result);
          else errors[i] = Number.NaN;
        } catch (error) {
          if (!(error instanceof QuantizationError) || options.signal?.aborted) throw error;
          Object.assign(point, { measured: false, loss: null, reason: error.message });
          if (error.code === 'value-not-finite') errors[i] = Number.NaN;
        }
        curve.metric.windows = last;
        estimate(curve, errors);
        if (first === 0) for (const each of curve.points) if (each === point || !each.measured) tell(each);
      }
      first = last;
      curve.undecided = undecidedPairs(curve.points, (point) => found.get(curve.points.indexOf(point)));
      if (curve.undecided.length === 0) break;
    }
    if (first > (judge.rounds[0] ?? 0)) for (const point of curve.points) tell(point);
  } finally {
    for (const output of kept.values()) await output.remove();
  }
  if (!ran) {
    const [point] = curve.points;
    throw failure('format-unsupported', point?.scheme ?? '', `no scheme could be measured: ${point?.reason}`);
  }
}
