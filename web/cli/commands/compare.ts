/** `wasmquant compare <reference> <quantized>`: error per tensor between two files, worst first. */
import type { Comparison, RunReport, TensorError, TensorReport } from '../../lib/node.js';
import { actionText } from '../../present/spec_text.js';
import { speedDetail, speedText } from '../../present/speed_text.js';
import { bytesText, decibelText, durationText, errorText, plural, shapeText, shareText } from '../../present/units.js';
import { percent, ruleText, verdictOf } from '../../present/verdict.js';
import { quantizerOptions, type ReportOptions, type ResourceOptions } from '../args.js';
import { diagnosticLines } from '../diagnostics.js';
import { type ModelFlags, openModel } from '../model_source.js';
import { onnxRuntimeTitle } from '../onnx_runtime/name.js';
import { runtimeFor } from '../onnx_runtime/runtime.js';
import type { Context, Outcome } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { startQuantizer } from '../quantizer.js';
import { checkReportPath, modelPaths, writeReport } from '../report_file.js';
import { type Column, table } from '../tables.js';
import type { Colors } from '../terminal.js';
import { printable } from '../terminal.js';

interface CompareOptions extends ResourceOptions, ReportOptions, ModelFlags {
  all?: boolean;
  outputs?: boolean;
  feeds?: string;
  measureSpeed?: boolean;
}

/** A tensor of a report that was measured. */
export type Measured = TensorReport & { error: TensorError };

const kShown = 40;

export const isExact = ({ error }: Measured) => error.mse === 0 && error.maxAbs === 0;

/** Tensors with an error, lowest SQNR first; equal ones by name, so that the order is the same everywhere. */
export function worstFirst({ tensors }: Pick<RunReport, 'tensors'>): Measured[] {
  const measured = tensors.filter((tensor): tensor is Measured => tensor.error !== null);
  return measured.sort((a, b) => a.error.sqnrDb - b.error.sqnrDb || (a.name < b.name ? -1 : 1) || 0);
}

/** Columns of measured tensors, shared with the report of quantize. */
export function errorColumns(colors: Colors): Column<Measured>[] {
  const dim = () => colors.dim;
  return [
    { title: 'tensor', cell: (tensor) => tensor.name },
    { title: 'shape', cell: (tensor) => shapeText(tensor.shape), paint: dim, spare: 4 },
    { title: 'spec', cell: (tensor) => (tensor.spec ? actionText(tensor) : ''), paint: dim },
    { title: 'sqnr', align: 'right', cell: ({ error }) => decibelText(error.sqnrDb) },
    { title: 'mse', align: 'right', cell: ({ error }) => errorText(error.mse), paint: dim, spare: 2 },
    { title: 'max error', align: 'right', cell: ({ error }) => errorText(error.maxAbs), paint: dim },
    {
      title: 'cosine',
      align: 'right',
      cell: ({ error }) => (error.nonFinite ? '' : error.cosine.toFixed(6)),
      paint: dim,
      spare: 1,
    },
    { title: 'before', align: 'right', cell: (tensor) => bytesText(tensor.bytesBefore), paint: dim, spare: 3 },
    { title: 'after', align: 'right', cell: (tensor) => bytesText(tensor.bytesAfter) },
  ];
}

/** `outputs off by 1.9 % on 4 inputs made up by type and shape`, then each output if there are several. */
function outputLines({ outputs }: Comparison, { bold, dim }: Colors): string[] {
  if (!outputs) return [];
  const off = (error: number) => `off by ${percent(error)} (${verdictOf('output-error', error)})`;
  const of = outputs.areGenerated
    ? 'made up from type and shape, which may say little about real ones'
    : 'of your feeds';
  return [
    '',
    bold(`outputs ${off(outputs.error)}, on ${plural(outputs.feeds, 'input')} ${of}`),
    ...(outputs.outputs.length > 1
      ? outputs.outputs.map(({ name, error }) => dim(`  ${printable(name)} ${off(error)}`))
      : []),
    dim(ruleText('output-error')),
    ...(outputs.speed
      ? ['', bold(speedText(outputs.speed)), dim(`${speedDetail(outputs.speed)} in ${onnxRuntimeTitle}`)]
      : []),
  ];
}

function compareLines(
  paths: [string, string],
  report: Comparison,
  options: CompareOptions,
  { terminal }: Context,
): string[] {
  const { out: colors, columns } = terminal;
  const measured = worstFirst(report);
  const exact = measured.filter(isExact).length;
  const different = options.all ? measured : measured.filter((tensor) => !isExact(tensor));
  const shown = options.all ? measured : different.slice(0, kShown);
  const hidden = different.length - shown.length;
  const unmeasured = report.tensors.length - measured.length;
  const { bytesBefore, bytesAfter } = report.totals;
  const summary = [
    `${plural(measured.length, 'tensor')} compared, ${exact} exact`,
    unmeasured > 0 ? `${unmeasured} without a counterpart` : '',
    `${bytesText(bytesBefore)} → ${bytesText(bytesAfter)} (${shareText(bytesAfter, bytesBefore)})`,
    durationText(report.durationMs),
  ];
  return [
    `${colors.bold(printable(paths[0]))} ${colors.dim('against')} ${colors.bold(printable(paths[1]))}`,
    '',
    ...(shown.length > 0
      ? [...table(shown, errorColumns(colors), { colors, columns })]
      : [measured.length > 0 ? 'no tensor differs' : 'nothing was compared']),
    ...(hidden > 0
      ? [colors.dim(`and ${plural(hidden, 'tensor')} with smaller errors; --all shows every tensor`)]
      : []),
    '',
    colors.bold(summary.filter(Boolean).join(', ')),
    ...outputLines(report, colors),
    ...(report.diagnostics.length > 0 ? ['', ...diagnosticLines(report.diagnostics, colors)] : []),
  ];
}

export async function compare(context: Context, paths: [string, string], options: CompareOptions): Promise<Outcome> {
  const { signal, terminal } = context;
  await checkReportPath(options, options.feeds === undefined ? paths : [...paths, options.feeds]);
  await using quantizer = await startQuantizer(quantizerOptions(options));
  await using reference = await openModel(quantizer, paths[0], signal, options);
  await using quantized = await openModel(quantizer, paths[1], signal, options);
  await checkReportPath(options, [
    ...(await modelPaths(paths[0], reference)),
    ...(await modelPaths(paths[1], quantized)),
  ]);
  const bar = new ProgressBar(terminal, 'comparing');
  try {
    const isRun = options.outputs === true || options.feeds !== undefined || options.measureSpeed === true;
    const given = isRun ? await runtimeFor(quantizer, options.feeds, signal) : {};
    const document = await quantizer.compare(reference, quantized, {
      ...given,
      ...(options.measureSpeed && { measureSpeed: true }),
      signal,
      onProgress: bar.update,
    });
    if (options.report !== undefined) await writeReport(options.report, document);
    const failed = document.diagnostics.some(({ severity }) => severity === 'error');
    return { document, lines: compareLines(paths, document, options, context), failed };
  } finally {
    bar.stop();
  }
}
