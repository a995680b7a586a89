// An output of both models side by side: as a picture, as the highest values, or by its error only.
import { useEffect, useRef } from 'preact/hooks';
import type { ComparedOutput } from 'wasmquant';
import { countText, shapeText } from '../../present/units';
import { percent, verdictOf } from '../../present/verdict';

type Values = ComparedOutput['reference'];

interface Size {
  height: number;
  width: number;
  channels: 1 | 3;
}

const leastSide = 16;

/** Null: no picture. */
function pictureSize(shape: readonly number[]): Size | null {
  const [height = 0, width = 0] = shape.slice(-2);
  const channels = shape.slice(0, -2).reduce((product, size) => product * size, 1);
  if (height < leastSide || width < leastSide || (channels !== 1 && channels !== 3)) return null;
  return { height, width, channels };
}

function Picture({ values, like, size, label }: { values: Values; like: Values; size: Size; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { height, width, channels } = size;
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    // Both by the range of the original, so that a shift shows.
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const value of like) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const scale = high > low ? 255 / (high - low) : 0;
    const image = context.createImageData(width, height);
    for (let pixel = 0; pixel < width * height; ++pixel) {
      for (let channel = 0; channel < 3; ++channel)
        image.data[4 * pixel + channel] =
          ((values[(channels === 1 ? 0 : channel) * width * height + pixel] ?? low) - low) * scale;
      image.data[4 * pixel + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }, [values, like]);
  return <canvas ref={canvas} class="try-picture" width={width} height={height} role="img" aria-label={label} />;
}

const rowsShown = 5;
const mostClasses = 50_000;

function Highest({ reference, quantized }: { reference: Values; quantized: Values }) {
  const order = [...reference.keys()].sort((a, b) => (reference[b] ?? 0) - (reference[a] ?? 0)).slice(0, rowsShown);
  const text = (value: number | undefined) => (value === undefined ? '–' : value.toPrecision(4));
  return (
    <table class="compare-table">
      <thead>
        <tr>
          <th scope="col">Highest values</th>
          <th scope="col">As opened</th>
          <th scope="col">Quantized</th>
        </tr>
      </thead>
      <tbody>
        {order.map((index) => (
          <tr key={index}>
            <th scope="row">number {countText(index)}</th>
            <td>{text(reference[index])}</td>
            <td>{text(quantized[index])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function OutputView({ output }: { output: ComparedOutput }) {
  const { name, shape, reference, quantized, error } = output;
  const size = reference.length === quantized.length ? pictureSize(shape) : null;
  const word = verdictOf('output-error', error);
  const isList = shape.at(-1) === reference.length && reference.length > 1 && reference.length <= mostClasses;
  return (
    <section class="try-output" aria-label={`Output ${name}`}>
      <p>
        <code>{name}</code> <span class="fine">{shapeText(shape)}</span> off by {percent(error)}{' '}
        <span class={`pill pill-${word}`}>{word}</span>
      </p>
      {size && (
        <div class="continuations">
          <figure>
            <figcaption class="fine">As opened</figcaption>
            <Picture values={reference} like={reference} size={size} label={`${name} of the model as opened`} />
          </figure>
          <figure>
            <figcaption class="fine">Quantized</figcaption>
            <Picture values={quantized} like={reference} size={size} label={`${name} of the quantized model`} />
          </figure>
        </div>
      )}
      {!size && isList && <Highest reference={reference} quantized={quantized} />}
    </section>
  );
}
