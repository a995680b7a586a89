/** `wasmquant merge-index <folder>`: merges the parts that `quantize --shards` wrote into one model. */
import { otherDiagnostics } from '../../present/output_size.js';
import { plural } from '../../present/units.js';
import type { ReportOptions } from '../args.js';
import { diagnosticLines } from '../diagnostics.js';
import type { Context, Outcome } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { startQuantizer } from '../quantizer.js';
import { checkReportPath, writeReport } from '../report_file.js';
import { printable } from '../terminal.js';
import { headlineLines } from './plan.js';

export async function mergeIndex(
  { signal, terminal }: Context,
  [folder]: [string],
  options: ReportOptions,
): Promise<Outcome> {
  await checkReportPath(options, [folder]);
  await using quantizer = await startQuantizer({ threads: 0 });
  const bar = new ProgressBar(terminal, 'checking');
  const watched = { signal, onProgress: bar.update };
  const merged = quantizer.mergeShards(folder, { overwrite: options.force === true, ...watched });
  const report = await merged.finally(() => bar.stop());
  if (options.report !== undefined) await writeReport(options.report, report);
  const { out: colors } = terminal;
  const diagnostics = otherDiagnostics(report.diagnostics);
  return {
    document: { ...report, output: folder },
    lines: [
      `${colors.bold(printable(folder))}  ${colors.dim(`${plural(report.files.length, 'file')}, ${report.format}`)}`,
      '',
      ...headlineLines(report, colors),
      ...(options.report !== undefined ? [colors.dim(`report of every tensor: ${printable(options.report)}`)] : []),
      ...(diagnostics.length > 0 ? ['', ...diagnosticLines(diagnostics, colors)] : []),
    ],
  };
}
