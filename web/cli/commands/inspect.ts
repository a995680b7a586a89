/** `wasmquant inspect <model>`: tensors, shapes, dtypes, sizes, inferred layer types. */
import type { Model, TensorInfo } from '../../lib/node.js';
import { collapse, type Group, single } from '../../present/collapse.js';
import { bytesText, elementCount, elementsText, plural, shapeText } from '../../present/units.js';
import { diagnosticLines } from '../diagnostics.js';
import { type ModelFlags, modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome } from '../outcome.js';
import { startQuantizer } from '../quantizer.js';
import { cut, table } from '../tables.js';
import { printable } from '../terminal.js';

interface InspectOptions extends ModelFlags {
  all?: boolean;
}

type Row = Group<TensorInfo> & { first: TensorInfo };

const kMetadataShown = 12;
const kMetadataWidth = 100;

const sum = (tensors: TensorInfo[], value: (tensor: TensorInfo) => number) =>
  tensors.reduce((total, tensor) => total + value(tensor), 0);

function totalsOf(tensors: TensorInfo[]) {
  return {
    tensors: tensors.length,
    parameters: sum(tensors, (tensor) => elementCount(tensor.shape)),
    bytes: sum(tensors, (tensor) => tensor.bytes),
  };
}

/** `BF16 4.9 MB, F32 12 kB`, the largest first. */
function dtypesText(tensors: TensorInfo[]): string {
  const bytes = new Map<string, number>();
  for (const tensor of tensors) bytes.set(tensor.dtype, (bytes.get(tensor.dtype) ?? 0) + tensor.bytes);
  const sorted = [...bytes].sort((a, b) => b[1] - a[1]);
  return sorted.map(([dtype, size]) => `${printable(dtype)} ${bytesText(size)}`).join(', ');
}

function metadataLines(metadata: Record<string, string>): string[] {
  const entries = Object.entries(metadata);
  const lines = entries.slice(0, kMetadataShown).map(([key, value]) => {
    const text = `${cut(key, kMetadataWidth)}: ${cut(value, kMetadataWidth)}`;
    return `  ${cut(printable(text), kMetadataWidth)}`;
  });
  const hidden = entries.length - lines.length;
  return hidden > 0 ? [...lines, `  and ${hidden} more; --json lists all`] : lines;
}

function inspectLines(argument: string, model: Model, options: InspectOptions, { terminal }: Context): string[] {
  const { out: colors, columns } = terminal;
  const groups = options.all
    ? single(model.tensors)
    : collapse(model.tensors, ({ dtype, shape, layerType }) => JSON.stringify([dtype, shape, layerType]));
  const rows = groups.flatMap(({ name, rows }): Row[] => (rows[0] ? [{ name, rows, first: rows[0] }] : []));
  const dim = () => colors.dim;
  const lines = table<Row>(
    rows,
    [
      { title: 'tensor', cell: (row) => row.name },
      { title: '', align: 'right', cell: (row) => (row.rows.length > 1 ? `${row.rows.length} ×` : ''), paint: dim },
      { title: 'class', cell: (row) => row.first.layerType, paint: dim, spare: 2 },
      { title: 'dtype', cell: (row) => row.first.dtype },
      { title: 'shape', cell: (row) => shapeText(row.first.shape) },
      {
        title: 'parameters',
        align: 'right',
        cell: (row) => elementsText(sum(row.rows, (t) => elementCount(t.shape))),
        paint: dim,
        spare: 1,
      },
      { title: 'size', align: 'right', cell: (row) => bytesText(sum(row.rows, (t) => t.bytes)) },
      {
        title: 'file',
        cell: (row) => (options.all && model.files.length > 1 ? row.first.file : ''),
        paint: dim,
        spare: 3,
      },
    ],
    { colors, columns },
  );
  const totals = totalsOf(model.tensors);
  const summary = [
    plural(totals.tensors, 'tensor'),
    `${elementsText(totals.parameters)} parameters`,
    bytesText(totals.bytes),
  ];
  const metadata = metadataLines(model.metadata);
  return [
    `${colors.bold(printable(argument))}  ${colors.dim(modelSummary(model))}`,
    '',
    ...lines,
    '',
    `${colors.bold(summary.join(', '))}  ${colors.dim(`(${dtypesText(model.tensors)})`)}`,
    ...(metadata.length > 0 ? ['', colors.dim('metadata'), ...metadata.map((line) => colors.dim(line))] : []),
    ...(model.diagnostics.length > 0 ? ['', ...diagnosticLines(model.diagnostics, colors)] : []),
  ];
}

export async function inspect(context: Context, [argument]: [string], options: InspectOptions): Promise<Outcome> {
  await using quantizer = await startQuantizer({ threads: 0 });
  await using model = await openModel(quantizer, argument, context.signal, options);
  const { format, files, tensors, metadata, config, diagnostics } = model;
  return {
    document: { format, files, tensors, totals: totalsOf(tensors), metadata, config, diagnostics },
    lines: inspectLines(argument, model, options, context),
  };
}
