// The curves of the open model, one for each runtime, and the points that runs of this visit added.
import { computed, effect, signal } from '@preact/signals';
import { type Curve, type CurvePoint, type Model, QuantizationError, type RuntimeName } from 'wasmquant';
import { curveRuntimeOf, curveRuntimes } from '../../present/runtimes/table';
import { tokenizerFiles } from '../../present/tokenizer_files';
import type { Kind } from '../../present/verdict';
import { quantizer } from '../app/engine';
import { explain, type Failure } from '../app/failure';
import { type Choice, choice } from '../configure/choice';
import { largeModel } from '../configure/planner';
import { formatFor } from '../configure/reach';
import type { RuntimeId } from '../configure/runtimes';
import { type SizeFor, whenSized } from '../configure/sizes';
import { workerRuntime } from '../feeds/worker-runtime';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';
import { textFor, texts } from '../quality/texts';
import { plainTokensOf, tokensOf } from '../quality/tokenize';

export interface Point extends CurvePoint {
  id: string;
  configText: string | null;
}

export interface ShownCurve {
  model: Model;
  runtime: RuntimeId;
  /** `paused`: for a run, after which it is measured again. */
  status: 'running' | 'done' | 'stopped' | 'paused' | 'failed';
  failure: Failure | null;
  metric: Curve['metric'];
  original: Curve['original'];
  points: Point[];
  /** Milliseconds since it began. */
  started: number;
}

export const curves = signal<ShownCurve[]>([]);
/** Points of runs with calibration. */
export const addedPoints = signal<{ model: Model; runtime: RuntimeId; kind: Kind; point: Point }[]>([]);

const runtimeId = computed(() => choice.value.runtime);

export const curve = computed<ShownCurve | null>(
  () => curves.value.find(({ model, runtime }) => model === opened.value?.model && runtime === runtimeId.value) ?? null,
);

/** Points of the curve and of runs; the frontier is that of all. */
export const points = computed<Point[]>(() => {
  const now = curve.value;
  if (!now) return [];
  const added = addedPoints.value.filter(
    ({ model, runtime, kind }) => model === now.model && runtime === now.runtime && kind === now.metric.kind,
  );
  const all = [...now.points, ...added.map(({ point }) => point)];
  const { bytes: most, loss: least } = now.original;
  const beats = (a: { bytes: number; loss: number | null }, b: Point) =>
    a.loss !== null &&
    b.loss !== null &&
    a.bytes <= b.bytes &&
    a.loss <= b.loss &&
    (a.bytes < b.bytes || a.loss < b.loss);
  return all.map((point) => ({
    ...point,
    onFrontier:
      point.loss !== null && !all.some((other) => beats(other, point)) && !beats({ bytes: most, loss: least }, point),
  }));
});

export const pointId = ({ preset, format, configText }: Pick<Choice, 'preset' | 'format' | 'configText'>) =>
  JSON.stringify([preset, format, configText]);

/** The point of a choice. */
export const pointOf = (of: Choice): Point | null => points.value.find(({ id }) => id === pointId(of)) ?? null;

/** A place without schemes of its own gets those of the model's format: codes are the same, sizes those of its formats. */
const targetOf = (id: RuntimeId): RuntimeName | undefined =>
  curveRuntimes.find((name) => name === id) ?? curveRuntimeOf('compressed-tensors');

/** Points in the formats of the runtime; those that it does not read are left out. */
function pointsFor(model: Model, runtime: RuntimeId, found: readonly CurvePoint[], sizeFor: SizeFor): Point[] {
  return found.flatMap((point) => {
    const format = formatFor(runtime, point.scheme, model, sizeFor);
    if (!format) return [];
    const bytes =
      format === point.format ? point.bytes : (sizeFor(point.scheme, format)?.totals?.bytesAfter ?? point.bytes);
    const id = pointId({ preset: point.scheme, format, configText: null });
    return [{ ...point, format, bytes, id, configText: null }];
  });
}

let controller: AbortController | null = null;

export function stopCurve(how: 'stopped' | 'paused' = 'paused'): void {
  controller?.abort(how);
}

// Runs and measurements have the workers to themselves.
effect(() => {
  if (isBusy.value) stopCurve();
});

function keep(next: ShownCurve): void {
  const others = curves.peek().filter(({ model, runtime }) => model !== next.model || runtime !== next.runtime);
  curves.value = [...others.filter(({ model }) => model === opened.peek()?.model), next];
}

/** The text of the losses. */
let measuredText = '';

/** Language models are measured on text. Null: another measure. */
async function textOf(model: Model): Promise<string | null> {
  if ((await tokenizerFiles(model)) === null) return null;
  measuredText = await textFor('measure');
  return measuredText;
}

/** Measures all schemes of the runtime. `outputs`: those of an ONNX model, which a runtime has to compute, and how fast it does. */
export async function measureCurve({ outputs = false } = {}): Promise<void> {
  const model = opened.peek()?.model;
  const engine = quantizer.peek();
  if (!model || !engine || isBusy.peek()) return;
  stopCurve();
  const own = new AbortController();
  controller = own;
  const { signal } = own;
  const { runtime } = choice.peek();
  let shown: ShownCurve = {
    model,
    runtime,
    status: 'running',
    failure: null,
    metric: { kind: 'weight-error', name: '' },
    original: { bytes: model.bytes, loss: null },
    points: [],
    started: performance.now(),
  };
  const show = (change: Partial<ShownCurve>) => {
    if (signal.aborted && change.status === undefined) return;
    shown = { ...shown, ...change };
    keep(shown);
  };
  show({});
  let taken = Promise.resolve();
  const take = ({ metric, original, points: found }: Curve) => {
    const shownAs = whenSized(model, (sizeFor) => pointsFor(model, runtime, found, sizeFor));
    const use = (points: Point[]) => show({ metric: { ...metric }, original: { ...original }, points });
    if (!(shownAs instanceof Promise)) use(shownAs);
    else taken = Promise.all([shownAs, taken]).then(([points]) => use(points));
  };
  const target = targetOf(runtime);
  const large = largeModel(model);
  const measure = async (text: string | null): Promise<Curve> => {
    if (large) {
      const tokens = text === null ? null : await plainTokensOf(model, text, signal);
      const asked = { target, ...(tokens && { tokens }), ...(outputs && { outputs }) };
      return large.ask('curve', asked, { signal, onTold: take });
    }
    const tokens = text === null ? null : await tokensOf(model, text, signal);
    return engine.curve(model, {
      target,
      signal,
      onPoint: (_: CurvePoint, soFar: Curve) => take(soFar),
      ...(tokens && { tokens }),
      ...(outputs && { runtime: workerRuntime(signal), measureSpeed: true }),
    });
  };
  try {
    const text = await textOf(model);
    try {
      take(await measure(text));
    } catch (error) {
      // Families without a forward pass: the error of the weights.
      if (signal.aborted || text === null || !(error instanceof QuantizationError)) throw error;
      take(await measure(null));
    }
    await taken;
    show({ status: 'done' });
  } catch (error) {
    if (signal.aborted) show({ status: signal.reason === 'stopped' ? 'stopped' : 'paused' });
    else show({ status: 'failed', failure: explain(error, 'The sizes could not be measured') });
  } finally {
    if (controller === own) controller = null;
  }
}

// Another text makes losses obsolete.
texts.measure.subscribe((text) => {
  if (curves.peek().length === 0 || text.trim() === '' || text === measuredText) return;
  stopCurve();
  curves.value = [];
  addedPoints.value = [];
});

opened.subscribe(() => {
  if (curves.peek().some(({ model }) => model !== opened.peek()?.model)) {
    stopCurve();
    curves.value = [];
    addedPoints.value = [];
  }
});
