/** What `wasmquant quantize` prints of a finished run: sizes, worst layers, files, and how to load them. */
import { dirname, join } from 'node:path';
import type { Model, Plan, RunReport } from '../../../lib/node.js';
import { otherDiagnostics } from '../../../present/output_size.js';
import { actionText } from '../../../present/spec_text.js';
import { bytesText, durationText, plural } from '../../../present/units.js';
import { coverageLines } from '../../coverage.js';
import { diagnosticLines } from '../../diagnostics.js';
import { modelSummary } from '../../model_source.js';
import type { Context } from '../../outcome.js';
import { table } from '../../tables.js';
import { type Colors, printable } from '../../terminal.js';
import { errorColumns, isExact, worstFirst } from '../compare.js';
import { headlineLines } from '../plan.js';

/** A run that has ended. */
export interface FinishedRun {
  report: RunReport;
  /** Path of the folder or file. */
  output: string;
  isFolder: boolean;
  /** How to load it. */
  load: string[];
  /** Path of its model card. */
  card?: string | undefined;
}

const kWorstShown = 5;

/** `24 × int4 per_group 32, 1 × int8 per_channel`, the most frequent first. */
export function specsText(tensors: Plan['tensors'] | RunReport['tensors']): string {
  const counts = new Map<string, number>();
  for (const tensor of tensors) {
    if (tensor.action === 'quantize') counts.set(actionText(tensor), (counts.get(actionText(tensor)) ?? 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return sorted.map(([text, count]) => `${count} × ${printable(text)}`).join(', ');
}

function fileLines(output: string, isFolder: boolean, report: RunReport, colors: Colors): string[] {
  // External data of an ONNX model is next to it.
  const folder = isFolder ? output : dirname(output);
  const files = report.files.map(({ name, bytes }) => ({
    path: isFolder || name.endsWith('_data') ? join(folder, name) : output,
    bytes,
  }));
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return table(
    files,
    [
      { title: 'file', cell: (file) => file.path },
      { title: 'size', align: 'right', cell: (file) => bytesText(file.bytes), paint: () => colors.dim },
    ],
    { colors, columns: Number.POSITIVE_INFINITY },
  );
}

/** The next steps after one part of a run. */
function partLines({ shards, files }: RunReport, output: string): string[] {
  if (!shards) return [];
  const wrote = files.length > 0 ? plural(files.length, 'shard') : 'no shard: there are more parts than shards';
  return [
    '',
    `part ${shards.part} of ${shards.of}: ${wrote}; when all parts are done:`,
    `  wasmquant merge-index ${printable(output)}`,
  ];
}

export function reportLines(
  argument: string,
  model: Model,
  { report, output, isFolder, load, card }: FinishedRun,
  reportFile: string | undefined,
  { terminal }: Context,
): string[] {
  const { out: colors, columns } = terminal;
  const { bytesBefore, quantized } = report.totals;
  const worst = worstFirst(report)
    .filter((tensor) => tensor.action === 'quantize' && !isExact(tensor))
    .slice(0, kWorstShown);
  const rate = report.durationMs > 0 ? `, ${bytesText((bytesBefore / report.durationMs) * 1000)}/s` : '';
  const where = report.threads > 0 ? plural(report.threads, 'worker') : 'no workers';
  const diagnostics = [...model.diagnostics, ...otherDiagnostics(report.diagnostics)];
  return [
    `${colors.bold(printable(argument))} → ${colors.bold(printable(output))}  ${colors.dim(`${modelSummary(model)} → ${report.format}`)}`,
    '',
    ...headlineLines(report, colors),
    ...(quantized > 0 ? [specsText(report.tensors)] : []),
    ...coverageLines(report.totals.coverage, { colors, columns }),
    colors.dim(`done in ${durationText(report.durationMs)}${rate}, ${where}`),
    ...(report.resumedFiles ? [colors.dim(`${plural(report.resumedFiles, 'file')} of an interrupted run reused`)] : []),
    ...(worst.length > 0
      ? [
          '',
          `${plural(worst.length, 'tensor')} with the lowest SQNR`,
          ...table(worst, errorColumns(colors), { colors, columns, indent: 2 }),
        ]
      : []),
    '',
    ...fileLines(output, isFolder, report, colors),
    ...(reportFile !== undefined ? [colors.dim(`report of every tensor: ${printable(reportFile)}`)] : []),
    ...(card !== undefined ? [colors.dim(`model card: ${printable(card)}`)] : []),
    ...partLines(report, output),
    ...(load.length > 0 ? ['', 'to load it', ...load.map((line) => `  ${line}`)] : []),
    ...(diagnostics.length > 0 ? ['', ...diagnosticLines(diagnostics, colors)] : []),
  ];
}
