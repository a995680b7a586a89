/** `wasmquant formats [model]`: which formats are read and written, or what can be written from one model, and how large it would be. */
import { formats as known } from '../../lib/internal.js';
import type { Model, OutputFormat, Quantizer } from '../../lib/node.js';
import { inputFormats, outputFormats, QuantizationError } from '../../lib/node.js';
import { bytesText } from '../../present/units.js';
import { modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome } from '../outcome.js';
import { startQuantizer } from '../quantizer.js';
import { table } from '../tables.js';
import { printable } from '../terminal.js';

/** The size of a model's files in one format, by preset; `reason`: why the format cannot be written. */
interface Written {
  format: OutputFormat;
  sizes: { preset: string; bytes: number }[];
  reason?: string;
  /** What the files are for. */
  description: string;
}

/** Bits of the usual presets, the first choice first. */
const kPresets: Record<string, number> = { int8: 8, int4_wo_128: 4, uint4_wo_128: 4 };
const kRecipes: Record<string, number> = { q8_0: 8, q4_k_m: 4 };

function sizeText(sizes: Written['sizes'], bits: number): string {
  const size = sizes.find(({ preset }) => (kPresets[preset] ?? kRecipes[preset]) === bits);
  return size ? bytesText(size.bytes) : '–';
}

async function writtenAs(
  quantizer: Quantizer,
  model: Model,
  format: OutputFormat,
  signal: AbortSignal,
): Promise<Written> {
  const { takesRecipes, title, description } = known.outputs[format];
  const found: Written = { format, sizes: [], description: description || title };
  for (const preset of Object.keys(takesRecipes ? kRecipes : kPresets)) {
    try {
      const { totals, diagnostics } = await quantizer.plan(model, preset, { format, signal });
      const failed = diagnostics.find(({ severity }) => severity === 'error');
      if (failed) found.reason ??= failed.message;
      else found.sizes.push({ preset, bytes: totals.bytesAfter });
    } catch (error) {
      if (!(error instanceof QuantizationError)) throw error;
      found.reason ??= error.detail;
    }
  }
  if (found.sizes.length > 0) delete found.reason;
  return found;
}

async function formatsOfModel(context: Context, argument: string): Promise<Outcome> {
  await using quantizer = await startQuantizer({ threads: 0 });
  await using model = await openModel(quantizer, argument, context.signal);
  const rows: Written[] = [];
  for (const format of outputFormats) rows.push(await writtenAs(quantizer, model, format, context.signal));
  const { out: colors, columns } = context.terminal;
  const lines = table<Written>(
    rows,
    [
      { title: 'format', cell: (row) => row.format, paint: () => colors.bold },
      { title: '8 bits', align: 'right', cell: ({ sizes }) => sizeText(sizes, 8) },
      { title: '4 bits', align: 'right', cell: ({ sizes }) => sizeText(sizes, 4) },
      { title: 'for', cell: (row) => row.reason ?? row.description, paint: () => colors.dim, prose: true },
    ],
    { colors, columns },
  );
  const heading = `${colors.bold(printable(argument))}  ${colors.dim(modelSummary(model))}`;
  return { document: { format: model.format, bytes: model.bytes, outputs: rows }, lines: [heading, '', ...lines] };
}

function allFormats({ terminal }: Context): Outcome {
  const { out: colors, columns } = terminal;
  const inputs = inputFormats.map((name) => ({ name, ...known.inputs[name] }));
  const outputs = outputFormats.map((name) => ({ name, ...known.outputs[name] }));
  const options = { colors, columns };
  const read = table(
    inputs,
    [
      { title: 'read', cell: ({ name }) => name, paint: () => colors.bold },
      { title: 'files', cell: ({ extensions }) => extensions.join(', ') },
    ],
    options,
  );
  const written = table(
    outputs,
    [
      { title: 'written', cell: ({ name }) => name, paint: () => colors.bold },
      { title: 'what it is', cell: ({ description }) => description, prose: true },
    ],
    options,
  );
  return { document: { inputs, outputs }, lines: [...read, '', ...written] };
}

export async function formats(context: Context, [model]: [string?]): Promise<Outcome> {
  return model === undefined ? allFormats(context) : formatsOfModel(context, model);
}
