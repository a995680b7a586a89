/** `wasmquant plan <model>`: which tensor gets which spec and why, predicted sizes, patterns that matched nothing. */
import type { Model, OutputFormat, Plan, PlannedTensor, Totals } from '../../lib/node.js';
import { planJson } from '../../lib/node.js';
import { collapse, type Group, single } from '../../present/collapse.js';
import { isOfSize, otherDiagnostics } from '../../present/output_size.js';
import { actionText } from '../../present/spec_text.js';
import { bytesText, plural, shapeText, shareText } from '../../present/units.js';
import { type ConfigOptions, type GgufFlags, type InclusionFlags, type OnnxFlags, planOptions } from '../args.js';
import { configFor } from '../config_source.js';
import { coverageLines } from '../coverage.js';
import { diagnosticLines } from '../diagnostics.js';
import { type ModelFlags, modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome } from '../outcome.js';
import { startQuantizer } from '../quantizer.js';
import { table } from '../tables.js';
import type { Colors } from '../terminal.js';
import { printable } from '../terminal.js';

interface PlanOptions extends ConfigOptions, OnnxFlags, GgufFlags, InclusionFlags, ModelFlags {
  format?: OutputFormat;
  all?: boolean;
}

type Row = Group<PlannedTensor> & { first: PlannedTensor };

/** `28 of 39 tensors quantized, 5.15 MB → 1.62 MB (31.4 %), 4.25 bits per weight`. */
export function totalsText(totals: Totals): string {
  const { tensors, quantized, bytesBefore, bytesAfter, bitsPerWeight } = totals;
  const parts = [
    `${quantized} of ${plural(tensors, 'tensor')} quantized`,
    `${bytesText(bytesBefore)} → ${bytesText(bytesAfter)} (${shareText(bytesAfter, bytesBefore)})`,
  ];
  if (quantized > 0 && Number.isFinite(bitsPerWeight)) parts.push(`${bitsPerWeight.toFixed(2)} bits per weight`);
  return parts.join(', ');
}

/** The totals, and below them that the result is larger than the model. */
export function headlineLines(
  { totals, tensors, diagnostics }: Pick<Plan, 'totals' | 'diagnostics'> & { tensors: readonly { action: string }[] },
  colors: Colors,
): string[] {
  const larger = diagnostics.filter(isOfSize).map(({ message, hint }) => `${message}; ${hint}`);
  const isCopy = tensors.every(({ action }) => action === 'copy');
  const headline = isCopy
    ? `nothing to quantize, the result is a copy: ${bytesText(totals.bytesAfter)}, ${totals.quantized > 0 ? `${totals.quantized} of ${plural(totals.tensors, 'tensor')} have their type already` : 'no tensor is changed'}`
    : totalsText(totals);
  return [colors.bold(headline), ...larger.map((text) => colors.yellow(printable(text)))];
}

const sum = (row: Row, value: (tensor: PlannedTensor) => number) =>
  row.rows.reduce((total, tensor) => total + value(tensor), 0);

/** Tensors share a line when everything but their name is equal. */
function alike({ dtype, shape, layerType, action, spec, reason }: PlannedTensor): string {
  return JSON.stringify([dtype, shape, layerType, action, spec, reason.rule, reason.where]);
}

function planLines(argument: string, model: Model, plan: Plan, options: PlanOptions, { terminal }: Context): string[] {
  const { out: colors, columns } = terminal;
  const groups = options.all ? single(plan.tensors) : collapse(plan.tensors, alike);
  const rows = groups.flatMap(({ name, rows }): Row[] => (rows[0] ? [{ name, rows, first: rows[0] }] : []));
  const dim = () => colors.dim;
  const plain = (text: string) => text;
  const lines = table<Row>(
    rows,
    [
      { title: 'tensor', cell: (row) => row.name },
      { title: '', align: 'right', cell: (row) => (row.rows.length > 1 ? `${row.rows.length} ×` : ''), paint: dim },
      { title: 'class', cell: (row) => row.first.layerType, paint: dim, spare: 2 },
      { title: 'shape', cell: (row) => shapeText(row.first.shape), paint: dim, spare: 3 },
      { title: 'from', cell: (row) => row.first.dtype, paint: dim, spare: 1 },
      {
        title: 'becomes',
        cell: (row) => actionText(row.first),
        paint: (row) =>
          row.first.action === 'quantize' ? colors.green : row.first.action === 'cast' ? plain : colors.dim,
      },
      {
        title: 'before',
        align: 'right',
        cell: (row) => bytesText(sum(row, (t) => t.bytesBefore)),
        paint: dim,
        spare: 4,
      },
      { title: 'after', align: 'right', cell: (row) => bytesText(sum(row, (t) => t.bytesAfter)) },
      { title: 'why', cell: (row) => row.first.reason.text, paint: dim, prose: true },
    ],
    { colors, columns },
  );
  const diagnostics = [...model.diagnostics, ...otherDiagnostics(plan.diagnostics)];
  const files = plan.files.map((file) => `${printable(file.name)} ${bytesText(file.bytes)}`).sort();
  return [
    `${colors.bold(printable(argument))}  ${colors.dim(`${modelSummary(model)} → ${plan.format}`)}`,
    '',
    ...lines,
    '',
    ...headlineLines(plan, colors),
    ...coverageLines(plan.totals.coverage, { colors, columns }),
    colors.dim(`${plural(files.length, 'file')}: ${files.join(', ')}`),
    ...(diagnostics.length > 0 ? ['', ...diagnosticLines(diagnostics, colors)] : []),
  ];
}

export async function plan(context: Context, [argument]: [string], options: PlanOptions): Promise<Outcome> {
  await using quantizer = await startQuantizer({ threads: 0 });
  const config = await configFor(quantizer, options, context.signal);
  await using model = await openModel(quantizer, argument, context.signal, options);
  const found = await quantizer.plan(model, config, { ...(await planOptions(options)), signal: context.signal });
  const failed = found.diagnostics.some(({ severity }) => severity === 'error');
  return { document: planJson(found), lines: planLines(argument, model, found, options, context), failed };
}
