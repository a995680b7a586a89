// The curve of the open model, and the button that measures it.
import { useEffect } from 'preact/hooks';
import { formats } from 'wasmquant/internal';
import { isNotFaster } from '../../present/speed_text';
import { bytesText, elementCount, remainingText } from '../../present/units';
import { quantizer } from '../app/engine';
import { FailureMessage } from '../app/failure';
import { choice } from '../configure/choice';
import { isLarge } from '../configure/reach';
import { shortName } from '../configure/scheme-names';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';
import { choosePoint, isMeasuredInVain, noteOf } from './cards';
import { axisNames, CurvePlot, type PlotPoint } from './plot';
import { curve, measureCurve, type Point, pointId, points, type ShownCurve, stopCurve } from './state';

/** Models up to this size on this machine are measured without being asked for: it takes seconds. */
const unaskedParameters = 60e6;

export function nameOf({ scheme, configText }: Point): string {
  return `${shortName(scheme)}${configText !== null ? ', calibrated' : ''}`;
}

function plotted(point: Point, isChosen: boolean): PlotPoint[] {
  const { id, bytes, loss, measured: isMeasured, onFrontier, configText } = point;
  if (loss === null) return [];
  const note = noteOf(point);
  const text = `${nameOf(point)}, ${bytesText(bytes)}, ${note?.text ?? loss.toPrecision(4)}, ${isMeasured ? 'measured' : 'an estimate'}`;
  const isCalibrated = configText !== null;
  return [{ id, bytes, loss, label: nameOf(point), isChosen, onFrontier, isMeasured, isCalibrated, text }];
}

/** How far it is: `9 of 12 schemes tried, 20 s left`. */
function progressText({ status, points: found, started }: ShownCurve): string {
  const tried = found.filter(({ measured, reason }) => measured || reason !== undefined).length;
  if (status === 'done') return `${tried} schemes measured`;
  const whole = `${tried} of ${found.length} schemes tried`;
  if (status !== 'running') return whole;
  if (tried === 0) return 'measuring…';
  const left = ((performance.now() - started) / tried) * (found.length - tried);
  return left > 500 ? `${whole}, ${remainingText(left)} left` : whole;
}

function metricText({ metric, points: found }: ShownCurve): string {
  const on =
    metric.windows === undefined
      ? ''
      : metric.kind === 'output-error'
        ? `on ${metric.windows} inputs made up from type and shape`
        : `on ${metric.windows} windows of text`;
  const estimates = found.some(({ measured, loss }) => !measured && loss !== null);
  const graph = opened.value && formats.inputs[opened.value.model.format].hasGraph;
  const reason = graph ? metric.kind === 'weight-error' && 'the model was not run' : metric.reason;
  const speeds = found.flatMap(({ speed }) => speed ?? []);
  const vain = isMeasuredInVain.value && 'they say nothing here: give yours under “Calibrate and measure”';
  const none = speeds.length > 0 && speeds.every(isNotFaster) && 'none is faster than the original in this browser';
  return [on, vain, estimates && 'dashed points are estimates', none, reason].filter(Boolean).join(' · ');
}

/** Low screens show the button, too. */
const plotHeight = () => (innerHeight < 800 ? 230 : 300);

function Plot({ now }: { now: ShownCurve }) {
  const { metric, original } = now;
  if (original.loss === null) return null;
  const chosen = pointId(choice.value);
  const shown = points.value.flatMap((point) => plotted(point, point.id === chosen));
  if (shown.length === 0) return null;
  const float = opened.value?.model.tensors.find(({ dtype }) => /^[FB]/.test(dtype))?.dtype;
  const label = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' }[float ?? ''] ?? 'the original';
  return (
    <CurvePlot
      points={shown}
      original={{ bytes: original.bytes, loss: original.loss, label }}
      kind={metric.kind}
      height={plotHeight()}
      label={`Size against loss of ${shown.length} schemes: ${axisNames[metric.kind]}`}
      onChoose={(id) => {
        const point = points.value.find((each) => each.id === id);
        if (point) choosePoint(point);
      }}
    />
  );
}

export function CurveView() {
  const model = opened.value?.model;
  const now = curve.value;
  const { runtime } = choice.value;
  const isReady = quantizer.value !== null;
  const hasGraph = model !== undefined && formats.inputs[model.format].hasGraph;
  useEffect(() => {
    const known = curve.peek();
    if (!model || !isReady || (known && known.status !== 'paused') || opened.peek()?.isRemote) return;
    const parameters = model.tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
    if (parameters > unaskedParameters || isLarge(model) || isBusy.peek()) return;
    // After the first drawing of the state.
    const timer = setTimeout(() => void measureCurve(), 50);
    return () => clearTimeout(timer);
  }, [model, runtime, isReady, isBusy.value]);
  useEffect(() => () => stopCurve(), [model]);
  if (!model) return null;
  const canMeasureOutputs = hasGraph && now?.metric.kind !== 'output-error';
  return (
    <>
      {now && <Plot now={now} />}
      {now?.status === 'running' && now.original.loss === null && (
        <div class="curve-waiting" style={{ height: `${plotHeight()}px` }} />
      )}
      <div class="curve-foot">
        {now && now.points.length > 0 && <span class="fine">{metricText(now)}</span>}
        {(!now || now.status === 'stopped' || now.status === 'paused' || now.status === 'failed') && (
          <button type="button" class="button" disabled={isBusy.value || !isReady} onClick={() => void measureCurve()}>
            Measure what each size costs
          </button>
        )}
        {now?.status === 'running' && (
          <button type="button" class="button button-small" onClick={() => stopCurve('stopped')}>
            Stop
          </button>
        )}
        {canMeasureOutputs && now?.status === 'done' && (
          <button
            type="button"
            class="button button-small"
            disabled={isBusy.value}
            onClick={() => void measureCurve({ outputs: true })}
          >
            Measure outputs and speed
          </button>
        )}
      </div>
      {now?.failure && <FailureMessage failure={now.failure} />}
    </>
  );
}

/** Behind the heading. */
export function CurveProgress() {
  const now = curve.value;
  return now ? <span role="status">{progressText(now)}</span> : null;
}
