// What calibration inputs say about layers: for the report, and in remarks that stand for many layers each.

import type { Diagnostic, LayerCalibration, TensorReport } from '../api/types.js';
import type { LayerEvidence } from '../engine/forward_module.js';

const decibels = (signal: number, noise: number) =>
  noise === 0 ? Number.POSITIVE_INFINITY : 10 * Math.log10(signal / noise);

export function layerCalibration(evidence: LayerEvidence): LayerCalibration {
  const { tokens, columns, rank, signal, error, nearestError, aimsAtFloat, isNearest } = evidence;
  return {
    tokens,
    features: columns,
    rank,
    outputSqnrDb: aimsAtFloat ? null : decibels(signal, error),
    nearestSqnrDb: aimsAtFloat ? null : decibels(signal, nearestError),
    isWorse: error > nearestError,
    isNearest,
  };
}

/** Of two of the experts in one tensor: what either saw at least, and the squares of both. */
export function joinedEvidence(a: LayerEvidence, b: LayerEvidence): LayerEvidence {
  return {
    tokens: Math.min(a.tokens, b.tokens),
    columns: Math.max(a.columns, b.columns),
    rank: Math.min(a.rank || b.rank, b.rank || a.rank),
    signal: a.signal + b.signal,
    error: a.error + b.error,
    nearestError: a.nearestError + b.nearestError,
    aimsAtFloat: a.aimsAtFloat || b.aimsAtFloat,
    isNearest: a.isNearest && b.isNearest,
  };
}

type Judged = TensorReport & { calibration: LayerCalibration };

const namesShown = 3;
/** As in src/algorithms/expected_error.h. */
const fewDirections = 8;

function remark(
  severity: Diagnostic['severity'],
  code: Diagnostic['code'],
  layers: Judged[],
  { what, detail, hint }: { what: string; detail(layer: LayerCalibration): string; hint: string },
): Diagnostic[] {
  const [first] = layers;
  if (!first) return [];
  const named = layers.slice(0, namesShown).map(({ layer, calibration }) => `${layer} (${detail(calibration)})`);
  const more = layers.length > namesShown ? ` and ${layers.length - namesShown} more` : '';
  const count = layers.length === 1 ? '1 layer' : `${layers.length} layers`;
  return [{ severity, code, where: first.name, message: `${count} ${what}: ${named.join(', ')}${more}`, hint }];
}

const fixed = (value: number | null) => (value === null ? 'unknown' : `${value.toFixed(1)} dB`);

/** Warnings about layers that saw too little, and that came out worse than by rounding to nearest. */
export function calibrationRemarks(tensors: readonly TensorReport[]): Diagnostic[] {
  const judged = tensors.filter((tensor): tensor is Judged => tensor.calibration !== undefined);
  const short = judged.filter(({ calibration: { tokens, features } }) => tokens > 0 && tokens < features);
  const poor = judged.filter(
    (layer) => !short.includes(layer) && layer.calibration.rank * fewDirections < layer.calibration.features,
  );
  const unseen = judged.filter(({ calibration: { tokens } }) => tokens === 0);
  const blind = judged.filter(({ calibration: { tokens, features } }) => tokens > 0 && features === 0);
  const worse = judged.filter(({ calibration }) => calibration.isWorse);
  const nearest = judged.filter(({ calibration }) => calibration.isNearest);
  const most = short.reduce((largest, { calibration }) => Math.max(largest, calibration.features), 0);
  const asking = 'or set "on_worse": "nearest" in the algorithms';
  return [
    ...remark('warning', 'calibration-short', short, {
      what: 'saw fewer tokens than they have input features, so that the algorithms overfit these few tokens',
      detail: ({ tokens, features }) => `${tokens} tokens, ${features} features`,
      hint: `give at least ${most} tokens, preferably ten times as many, ${asking}`,
    }),
    ...remark('warning', 'calibration-poor', poor, {
      what: 'saw inputs that vary in few directions, as repeated text has them',
      detail: ({ rank, features }) => `${rank} of ${features}`,
      hint: `give other text, more like what the model will read, ${asking}`,
    }),
    ...remark('warning', 'calibration-blind', blind, {
      what: 'saw only zeros, so that no importance was known when their weights were rounded',
      detail: ({ tokens }) => `${tokens} tokens`,
      hint: 'give other text, or exclude them',
    }),
    ...remark('warning', 'calibration-unseen', unseen, {
      what: 'are experts that the router sent no token, or hold such experts, which were rounded to nearest',
      detail: ({ features }) => (features === 0 ? '0 tokens' : '0 tokens in one or more'),
      hint: 'give more text, or text of more kinds',
    }),
    ...remark('warning', 'calibration-worse', worse, {
      what: 'came out worse than rounded to nearest, measured on their own inputs',
      detail: ({ outputSqnrDb, nearestSqnrDb }) => `${fixed(outputSqnrDb)}, nearest ${fixed(nearestSqnrDb)}`,
      hint: `set "on_worse": "nearest" in the algorithms, which keeps the better of the two, or leave the algorithm out`,
    }),
    ...remark('note', 'rounded-to-nearest', nearest, {
      what: 'were rounded to nearest, because the algorithm is worse on their own inputs',
      detail: ({ nearestSqnrDb }) => fixed(nearestSqnrDb),
      hint: 'this is what "on_worse": "nearest" asks for',
    }),
  ];
}
