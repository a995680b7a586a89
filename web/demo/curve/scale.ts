// Where things are in the plot: sizes on a logarithmic axis, losses on a linear one, labels where nothing is in the way.
import { multiples, sizeTicks, stepFor } from '../../present/axis';

export interface Mark {
  id: string;
  bytes: number;
  loss: number;
  label: string;
  isChosen: boolean;
  onFrontier: boolean;
}

export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Tick {
  at: number;
  value: number;
}

export interface Scale {
  x(bytes: number): number;
  /** Losses above the plot are drawn at its upper edge. */
  y(loss: number): number;
  isAbove(loss: number): boolean;
  xTicks: Tick[];
  yTicks: Tick[];
  /** Between the numbers of the axis of losses. */
  yStep: number;
}

/** Losses that are many times those of most schemes would press all others onto the axis. */
const mostOfUsual = 2;

/** Between the middles of two sizes on the axis. */
const roomOfSize = 64;

function range(values: number[], base: number): [number, number] {
  const increases = values.map((value) => value - base).filter((value) => value > 0);
  if (increases.length === 0) return [base, base + (Math.abs(base) || 1) * 0.01];
  increases.sort((a, b) => a - b);
  const usual = increases[Math.floor(increases.length * 0.75)] ?? 0;
  const most = Math.max(...increases.filter((value) => value <= mostOfUsual * usual), usual);
  return [base, base + most * 1.15];
}

export function scaleOf(frame: Frame, marks: readonly Pick<Mark, 'bytes' | 'loss'>[], base: number): Scale {
  const sizes = marks.map(({ bytes }) => bytes);
  const [low, high] = [Math.min(...sizes) / 1.12, Math.max(...sizes) * 1.1];
  const [bottom, most] = range(
    marks.map(({ loss }) => loss),
    base,
  );
  const margin = (most - bottom) * 0.12;
  const from = bottom - margin;
  const inner = frame.width - frame.left - frame.right;
  const tall = frame.height - frame.top - frame.bottom;
  const x = (bytes: number) => frame.left + (Math.log(bytes / low) / Math.log(high / low || 2)) * inner;
  const plain = (loss: number) => frame.top + (1 - (loss - from) / (most - from)) * tall;
  const isAbove = (loss: number) => loss > most;
  const y = (loss: number) => Math.max(frame.top, plain(loss));
  const yStep = stepFor(most - bottom, 5);
  const yTicks = multiples(Math.max(0, from), most, yStep).map((value) => ({ at: plain(value), value }));
  const xTicks = sizeTicks(low, high, (left, right) => x(right) - x(left) > roomOfSize);
  return { x, y, isAbove, xTicks: xTicks.map((value) => ({ at: x(value), value })), yTicks, yStep };
}

export interface Label {
  id: string;
  x: number;
  y: number;
  anchor: 'start' | 'end' | 'middle';
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Of letters of 13 px, and where the axis has its name. */
const [letter, axisLine] = [7.4, 20];

const meet = (a: Box, b: Box) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** Places for labels, the important ones first; those without room are left out. */
export function placeLabels(frame: Frame, scale: Scale, marks: readonly Mark[], line: readonly Mark[]): Label[] {
  const taken: Box[] = marks.map(({ bytes, loss }) => {
    const [x, y] = [scale.x(bytes), scale.y(loss)];
    return { left: x - 8, right: x + 8, top: y - 8, bottom: y + 8 };
  });
  // The frontier as a row of small boxes.
  for (const [i, mark] of line.slice(1).entries()) {
    const before = line[i] as Mark;
    for (let part = 1; part < 12; ++part) {
      const x = scale.x(before.bytes) + ((scale.x(mark.bytes) - scale.x(before.bytes)) * part) / 12;
      const y = scale.y(before.loss) + ((scale.y(mark.loss) - scale.y(before.loss)) * part) / 12;
      taken.push({ left: x - 2, right: x + 2, top: y - 2, bottom: y + 2 });
    }
  }
  const rank = ({ isChosen, onFrontier }: Mark) => (isChosen ? 0 : onFrontier ? 1 : 2);
  const labels: Label[] = [];
  for (const mark of [...marks].sort((a, b) => rank(a) - rank(b))) {
    const [x, y] = [scale.x(mark.bytes), scale.y(mark.loss)];
    const width = mark.label.length * letter;
    const gap = mark.isChosen ? 15 : 12;
    const places: [number, number, Label['anchor']][] = [
      [x + gap, y + 4, 'start'],
      [x - gap, y + 4, 'end'],
      [x, y - gap - 3, 'middle'],
      [x, y + gap + 11, 'middle'],
      [x + gap, y - 9, 'start'],
      [x - gap, y - 9, 'end'],
      [x + gap, y + 18, 'start'],
      [x - gap, y + 18, 'end'],
    ];
    for (const [at, baseline, anchor] of places) {
      const left = anchor === 'start' ? at : anchor === 'end' ? at - width : at - width / 2;
      const box = { left, right: left + width, top: baseline - 11, bottom: baseline + 3 };
      const isInside = left >= frame.left + 2 && box.right <= frame.width && box.bottom <= frame.height - frame.bottom;
      if (!isInside || box.top < axisLine || taken.some((other) => meet(box, other))) continue;
      taken.push(box);
      labels.push({ id: mark.id, x: at, y: baseline, anchor });
      break;
    }
  }
  return labels;
}
