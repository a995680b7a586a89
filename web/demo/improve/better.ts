// "Make it better": the same scheme with calibration, run and measured, and how much of the loss of plain rounding that recovers.
import { computed, signal } from '@preact/signals';
import type { Model } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { curveRuntimeOf } from '../../present/runtimes/table';
import { quantizer } from '../app/engine';
import { lastRun } from '../app/stage';
import { algorithms, hasAlgorithm } from '../configure/algorithms';
import { choice, chosenConfig, dialectOf, needsText } from '../configure/choice';
import { holdsAlgorithms } from '../configure/formats';
import { largeModel } from '../configure/planner';
import { addedPoints, curve, pointId, points } from '../curve/state';
import { modelOf } from '../inspect/kept-model';
import { opened } from '../open/opened';
import { runJob } from '../quality/job';
import { textFor, texts } from '../quality/texts';
import { plainTokensOf, tokensOf } from '../quality/tokenize';
import { type FinishedRun, run } from '../run/runs';
import { startRun } from '../run/start-run';

/** Losses of one run on the same windows of text. */
export interface Losses {
  run: number;
  original: number;
  /** Of the same scheme without calibration; null if the run has none. */
  plain: number | null;
  loss: number;
  windows: number;
}

export const losses = signal<Losses[]>([]);

function namesAlgorithms({ algo_config: given }: Record<string, unknown>): boolean {
  return Array.isArray(given) ? given.length > 0 : typeof given === 'object' && given !== null;
}

/** The chosen config with AWQ and GPTQ; null if it cannot have them. */
function withAlgorithms(config: Record<string, unknown>): Record<string, unknown> | null {
  const hasBest = holdsAlgorithms(config, choice.value.format) && ['quark', 'gguf'].includes(dialectOf(config));
  return hasBest && !namesAlgorithms(config) && !needsText(config)
    ? quantizer.value!.presetConfig(config, { best: true })
    : null;
}

/** Why there is nothing to be had; null if there is. */
export const whyNotBetter = computed<string | null>(() => {
  const model = opened.value?.model;
  const config = chosenConfig.value;
  if (!model || !config) return '';
  const source = formats.inputs[model.format];
  if (source.hasGraph) return 'ONNX models are calibrated with feeds: see “Calibrate and measure”.';
  if (source.carriesConfig) return 'A GGUF file cannot be calibrated. Open the folder that it was made from.';
  if (curve.value?.metric.kind === 'embedding-error') return 'Calibration runs language models; this is an encoder.';
  if (!model.config) return 'Calibration needs a language model: open its folder, with config.json and tokenizer.json.';
  if (needsText(config)) return 'This choice is calibrated.';
  if (namesAlgorithms(config)) return 'This config names its own algorithms.';
  if (!holdsAlgorithms(config, choice.value.format)) return 'Nothing here is rounded to codes that could be chosen.';
  return withAlgorithms(config) ? null : "Calibration needs a config in Quark's dialect, or a GGUF recipe.";
});

export const betterTitle = computed(() => {
  const text = texts.calibrate.value.trim() === '' ? 'the built-in text, English prose' : 'your text';
  return `AWQ and GPTQ: same size, less loss. Calibrates with ${text}.`;
});

export function isCalibrated(done: FinishedRun): boolean {
  return algorithms.some((algorithm) => hasAlgorithm(done.config, algorithm));
}

/** Between the click and the losses. */
export const isImproving = signal(false);

/** Windows for runs that no curve was measured for. */
const usualWindows = 16;

/** The original and plain rounding of the same preset, as the curve measured them, or measured now. */
async function plainOf(model: Model, done: FinishedRun, signal: AbortSignal) {
  const { preset, format } = done.choice;
  const known = curve.value;
  const plain = points.value.find(({ id }) => id === pointId({ preset, format, configText: null }));
  if (known?.status === 'done' && known.metric.kind === 'bits-per-byte' && plain?.measured)
    return {
      original: known.original.loss ?? 0,
      plain: plain.loss ?? 0,
      windows: known.metric.windows ?? usualWindows,
    };
  const text = await textFor('measure');
  const target = curveRuntimeOf(format) ?? curveRuntimeOf('compressed-tensors');
  const asked = { schemes: [preset], target, windows: usualWindows };
  const large = largeModel(model);
  const found = large
    ? await large.ask('curve', { ...asked, tokens: await plainTokensOf(model, text, signal) }, { signal })
    : await quantizer.value!.curve(model, { ...asked, tokens: await tokensOf(model, text, signal), signal });
  const [point] = found.points;
  return {
    original: found.original.loss ?? 0,
    plain: point?.loss ?? null,
    windows: found.metric.windows ?? usualWindows,
  };
}

/** Measures a run with calibration on the windows of the curve. */
export async function measureBetter(model: Model, done: FinishedRun): Promise<void> {
  await runJob('Measuring', async (signal, onProgress) => {
    const { original, plain, windows } = await plainOf(model, done, signal);
    const tokens = await tokensOf(model, await textFor('measure'), signal);
    const found = await quantizer
      .value!.languageModel(await modelOf(done), { source: model })
      .evaluate({ tokens: { ...tokens, sequences: windows }, signal, onProgress });
    if (found.bitsPerByte === null) return;
    const loss = found.bitsPerByte;
    losses.value = [...losses.value, { run: done.number, original, plain, loss, windows }];
    const { preset: scheme, format, configText, runtime } = done.choice;
    const bytes = done.report.totals.bytesAfter;
    const point = { scheme, format, bytes, loss, measured: true, onFrontier: false, id: pointId(done.choice) };
    const others = addedPoints.value.filter((added) => added.model !== model || added.point.id !== point.id);
    addedPoints.value = [...others, { model, runtime, kind: 'bits-per-byte', point: { ...point, configText } }];
  });
}

/** Must be called from a click: a folder on disk may be picked. */
export async function makeBetter(): Promise<void> {
  const model = opened.value?.model;
  const config = chosenConfig.value;
  if (!model || !config || whyNotBetter.value !== null) return;
  choice.value = { ...choice.value, card: null, configText: JSON.stringify(withAlgorithms(config), null, 2) };
  const last = lastRun.value?.number;
  isImproving.value = true;
  try {
    await startRun();
    const done = lastRun.value;
    if (run.value.state === 'idle' && done && done.number !== last) await measureBetter(model, done);
  } finally {
    isImproving.value = false;
  }
}
