// Size against loss. Points that were measured have a full outline, estimates a dashed one; the frontier is a line, the
// original's loss a dashed one. With `onChoose` points are buttons.
import { useRef } from 'preact/hooks';
import { lossTickText, sizeTickText } from '../../present/axis';
import type { Kind } from '../../present/verdict';
import { useWidth } from '../app/width';
import { type Frame, type Mark, placeLabels, scaleOf } from './scale';

export interface PlotPoint extends Mark {
  isMeasured: boolean;
  isCalibrated: boolean;
  /** What a screen reader says. */
  text: string;
}

interface Properties {
  points: readonly PlotPoint[];
  original: { bytes: number; loss: number; label: string };
  /** Of loss: what the axis says and how. */
  kind: Kind;
  height: number;
  /** The whole in a sentence. */
  label: string;
  onChoose?: ((id: string) => void) | undefined;
}

export const axisNames: Record<Kind, string> = {
  'bits-per-byte': 'bits per byte (lower is better)',
  kld: 'KLD to the original, nats (lower is better)',
  'embedding-error': '1 − cosine of the embeddings (lower is better)',
  'output-error': 'relative error of the outputs (lower is better)',
  'weight-error': 'relative error of the weights (lower is better)',
};

function Point({
  point,
  x,
  y,
  isAbove,
  onChoose,
}: { point: PlotPoint; x: number; y: number; isAbove: boolean } & Pick<Properties, 'onChoose'>) {
  const kind = [
    'curve-point',
    point.isChosen && 'curve-chosen',
    point.isCalibrated && 'curve-calibrated',
    !point.isMeasured && 'curve-estimate',
  ]
    .filter(Boolean)
    .join(' ');
  const circles = (
    <>
      <circle class="curve-reach" cx={x} cy={y} r={13} />
      <circle class="curve-dot" cx={x} cy={y} r={point.isChosen ? 8.5 : 5.5} />
      {isAbove && <path class="curve-arrow" d={`M${x - 4} ${y - 10}l4 -5l4 5z`} />}
    </>
  );
  if (!onChoose) return <g class={kind}>{circles}</g>;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a button cannot be inside of a drawing
    <g
      class={kind}
      role="button"
      tabIndex={0}
      aria-label={point.text}
      aria-pressed={point.isChosen}
      onClick={() => onChoose(point.id)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        onChoose(point.id);
      }}
    >
      <title>{point.text}</title>
      {circles}
    </g>
  );
}

export function CurvePlot({ points, original, kind, height, label, onChoose }: Properties) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place, 640);
  const frame: Frame = { width: width.value, height, left: 52, right: 22, top: 40, bottom: 46 };
  const float: Mark = { id: '', ...original, isChosen: false, onFrontier: true };
  const marks = [...points, float];
  const scale = scaleOf(frame, marks, original.loss);
  const line = marks.filter((mark) => mark.onFrontier).sort((a, b) => a.bytes - b.bytes);
  const labels = new Map(placeLabels(frame, scale, marks, line).map((placed) => [placed.id, placed]));
  const Text = ({ mark }: { mark: Mark }) => {
    const placed = labels.get(mark.id);
    if (!placed) return null;
    return (
      <text class={mark.isChosen ? 'curve-ink' : ''} x={placed.x} y={placed.y} text-anchor={placed.anchor}>
        {mark.label}
      </text>
    );
  };
  const [first, last] = [frame.left, frame.width - frame.right];
  const middle = (first + last) / 2;
  return (
    <div class="curve" ref={place}>
      <svg
        width={frame.width}
        height={height}
        viewBox={`0 0 ${frame.width} ${height}`}
        role={onChoose ? 'group' : 'img'}
        aria-label={label}
      >
        {scale.yTicks.map(({ at, value }) => (
          <g key={value}>
            <line class="curve-grid" x1={first} x2={last} y1={at} y2={at} />
            <text x={first - 8} y={at + 4} text-anchor="end">
              {lossTickText(kind, value, scale.yStep)}
            </text>
          </g>
        ))}
        <g>
          {scale.xTicks.map(({ at, value }) => (
            <text key={value} x={at} y={height - 24} text-anchor="middle">
              {sizeTickText(value)}
            </text>
          ))}
          <text x={middle} y={height - 4} text-anchor="middle">
            size of the weight file →
          </text>
          <text x={8} y={14}>
            {axisNames[kind]}
          </text>
        </g>
        <line class="curve-original" x1={first} x2={last} y1={scale.y(original.loss)} y2={scale.y(original.loss)} />
        <polyline
          class="curve-frontier"
          points={line.map(({ bytes, loss }) => `${scale.x(bytes)},${scale.y(loss)}`).join(' ')}
        />
        <circle class="curve-float" cx={scale.x(original.bytes)} cy={scale.y(original.loss)} r={5.5} />
        <g>
          {marks.map((mark) => (
            <Text key={mark.id} mark={mark} />
          ))}
        </g>
        {points.map((point) => (
          <Point
            key={point.id}
            point={point}
            x={scale.x(point.bytes)}
            y={scale.y(point.loss)}
            isAbove={scale.isAbove(point.loss)}
            onChoose={onChoose}
          />
        ))}
      </svg>
    </div>
  );
}
