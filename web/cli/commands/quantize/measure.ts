/** What outputs of several presets lose, and how fast they run: `--text`, `--measure-speed`. */
import type { Divergence, OutputComparison } from '../../../lib/node.js';
import { ratioOfTimes, spreadText } from '../../../present/speed_text.js';
import { percent } from '../../../present/verdict.js';
import { usageError } from '../../failure.js';
import { openModel } from '../../model_source.js';
import { runtimeFor } from '../../onnx_runtime/runtime.js';
import type { Context } from '../../outcome.js';
import { ProgressBar } from '../../progress.js';
import type { Column } from '../../tables.js';
import { openText } from '../../token_source.js';
import type { Inputs, QuantizeOptions } from './run.js';

/** Of one output. */
export interface Measured {
  /** With `--text`: how far its predictions are from those of the model. */
  divergence?: Divergence;
  /** With `--measure-speed`: its outputs on inputs that are made up, and the time of a run. */
  outputs?: OutputComparison;
  /** Why nothing was measured. */
  reason?: string;
}

/** Of 256 tokens each. */
const kSequences = 16;

/** Throws for options of several presets where there is one. */
export function refuseMeasures({ text, measureSpeed }: QuantizeOptions): void {
  if (text !== undefined)
    throw usageError(
      '--text goes with several presets, such as --preset q4_k_m,q8_0',
      'wasmquant evaluate OUT --against MODEL --text FILE measures one; --calibration-text calibrates',
    );
  if (measureSpeed)
    throw usageError(
      '--measure-speed goes with several presets, such as --preset int8,int4_wo_32',
      'wasmquant compare MODEL OUT --measure-speed measures one',
    );
}

/**
 * Measures an output; null if nothing is asked for. What stands in the way is found before anything is written: the text, a runtime that is
 * not installed, a model whose forward pass is unknown.
 */
export async function measureOf(
  { quantizer, model, source }: Inputs,
  { text, measureSpeed }: QuantizeOptions,
  { signal, terminal }: Context,
): Promise<((output: string) => Promise<Measured>) | null> {
  if (text === undefined && !measureSpeed) return null;
  if (measureSpeed && model.format !== 'onnx')
    throw usageError('--measure-speed is for ONNX models, which a runtime computes here', 'leave it out');
  const runtime = measureSpeed ? await runtimeFor(quantizer, undefined, signal) : null;
  const read = source ? [source, model] : [model];
  const tokens = text === undefined ? null : { ...(await openText(read, text)), sequences: kSequences };
  const evaluated = async (path: string | null) => {
    await using written = path === null ? null : await openModel(quantizer, path, signal);
    const bar = new ProgressBar(terminal);
    const given = { signal, onProgress: bar.update };
    try {
      const lm = quantizer.languageModel(written ?? model, source ? { source } : {});
      const found = tokens && (await lm.evaluate({ tokens, ...given, ...(written && { against: model }) }));
      const compared =
        written && runtime && (await quantizer.compare(model, written, { ...runtime, measureSpeed: true, ...given }));
      return {
        ...(found?.divergence && { divergence: found.divergence }),
        ...(compared?.outputs && { outputs: compared.outputs }),
      };
    } finally {
      bar.stop();
    }
  };
  if (tokens) await evaluated(null);
  return async (output) => {
    try {
      return await evaluated(output);
    } catch (error) {
      signal.throwIfAborted();
      return { reason: error instanceof Error ? error.message : String(error) };
    }
  };
}

const kCells: [title: string, cell: (measured: Measured) => string][] = [
  ['KLD', ({ divergence: found }) => (found ? `${found.meanKld.toFixed(5)} ± ${found.meanKldError.toFixed(5)}` : '')],
  ['outputs off by', ({ outputs }) => (outputs ? percent(outputs.error) : '')],
  ['a run', ({ outputs }) => (outputs?.speed ? spreadText(outputs.speed.milliseconds) : '')],
  ['speed', ({ outputs }) => (outputs?.speed ? ratioOfTimes(outputs.speed) : '')],
];

/** What was measured, by the titles of columns. */
export const measuredCells = (measured: Measured): Record<string, string> =>
  Object.fromEntries(kCells.map(([title, cell]) => [title, cell(measured)]).filter(([, text]) => text !== ''));

/** Columns for what was measured. */
export function measuredColumns<Row extends { measured: Measured }>(): Column<Row>[] {
  return [
    ...kCells.map(([title, cell]): Column<Row> => ({ title, align: 'right', cell: ({ measured }) => cell(measured) })),
    { title: 'not measured', cell: ({ measured }) => measured.reason ?? '', prose: true },
  ];
}
