/** `wasmquant evaluate <model> --tokens F`: perplexity and bits per byte; with `--against`, the KLD to another model, or of encoders the
 * agreement of embeddings. */
import type { Divergence, EvaluateOptions, Evaluation } from '../../lib/node.js';
import { durationText, plural } from '../../present/units.js';
import { quantizerOptions, type ReportOptions, type ResourceOptions } from '../args.js';
import { type ModelFlags, modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { startQuantizer } from '../quantizer.js';
import { checkReportPath, modelPaths, writeReport } from '../report_file.js';
import { printable } from '../terminal.js';
import { openTokens, type TokenOptions } from '../token_source.js';
import { agreementLines, agreementOf } from './evaluate/embeddings.js';

interface EvaluateCommand extends ResourceOptions, ReportOptions, TokenOptions, ModelFlags {
  bytesPerToken?: number;
  activations?: EvaluateOptions['activations'];
  source?: string;
  against?: string;
  scored?: 'all' | 'second-half';
}

/** Standard error of the mean over sequences, in bits per byte (or token). */
function standardError({ sequenceLosses, bytes, tokens }: Evaluation): number {
  const count = sequenceLosses.length;
  const mean = sequenceLosses.reduce((sum, loss) => sum + loss, 0) / count;
  const variance = sequenceLosses.reduce((sum, loss) => sum + (loss - mean) ** 2, 0) / Math.max(1, count - 1);
  return (Math.sqrt(variance / count) * count) / Math.LN2 / (bytes ?? tokens);
}

const plusMinus = (value: number, error: number, digits: number) =>
  `${value.toFixed(digits)} ± ${error.toFixed(digits)}`;

/** The rows that llama-perplexity --kl-divergence prints of these. */
function divergenceRows(against: string, found: Divergence): string[] {
  const percent = (share: number, error: number) => `${plusMinus(100 * share, 100 * error, 3)} %`;
  return [
    '',
    `against ${printable(against)}`,
    `mean KLD        ${plusMinus(found.meanKld, found.meanKldError, 6)}`,
    `median KLD      ${found.medianKld.toFixed(6)}`,
    `99 % KLD        ${found.kld99.toFixed(6)}`,
    `99.9 % KLD      ${found.kld999.toFixed(6)}`,
    `maximum KLD     ${found.maxKld.toFixed(6)}`,
    `same top token  ${percent(found.sameTop, found.sameTopError)}`,
    `ln(PPL ratio)   ${plusMinus(found.logPerplexityRatio, found.logPerplexityRatioError, 6)}`,
  ];
}

/** How the numbers were made. */
function basisLine({ tokens, sequences, length, scored, activations, durationMs }: Evaluation, given: string): string {
  const sequencesText = `${plural(sequences, 'sequence')} of ${tokens + sequences < sequences * length ? 'up to ' : ''}${length} tokens`;
  const which = scored === 'all' ? '' : ', in the second half of each';
  const inputs =
    activations === 'float32' ? '' : `, inputs of layers ${activations === 'int8' ? 'int8' : "as GGUF's runtime"}`;
  return `${tokens} predictions in ${sequencesText}${which}${inputs}, of ${printable(given)}, ${durationText(durationMs)}`;
}

function evaluationLines(
  model: string,
  text: string,
  found: Evaluation,
  { given, against }: { given: string; against: string | undefined },
  { terminal }: Context,
): string[] {
  const { out: colors } = terminal;
  const { bitsPerByte, bitsPerToken, perplexity, sequences, divergence } = found;
  const error = sequences > 1 ? colors.dim(` ± ${standardError(found).toFixed(4)}`) : '';
  const rows = [
    bitsPerByte === null ? null : `bits per byte   ${colors.bold(bitsPerByte.toFixed(4))}${error}`,
    `bits per token  ${colors.bold(bitsPerToken.toFixed(4))}${bitsPerByte === null ? error : ''}`,
    `perplexity      ${colors.bold(perplexity.toFixed(4))}`,
  ];
  return [
    `${colors.bold(printable(model))}  ${colors.dim(text)}`,
    '',
    ...rows.filter((row) => row !== null),
    ...(divergence && against !== undefined ? divergenceRows(against, divergence) : []),
    '',
    colors.dim(basisLine(found, given)),
  ];
}

export async function evaluate(context: Context, [path]: [string], options: EvaluateCommand): Promise<Outcome> {
  const { signal, terminal } = context;
  const given = options.tokens ?? options.text ?? '';
  await checkReportPath(options, [path, given]);
  await using quantizer = await startQuantizer(quantizerOptions(options));
  await using model = await openModel(quantizer, path, signal, options);
  await using source = options.source === undefined ? null : await openModel(quantizer, options.source, signal);
  const { against: referencePath } = options;
  await using against = referencePath === undefined ? null : await openModel(quantizer, referencePath, signal, options);
  const tokenizers = [source, model, against].filter((one) => one !== null);
  const runs = quantizer.languageModel(model, source ? { source } : {});
  if (await runs.isEncoder()) {
    const bar = new ProgressBar(terminal);
    try {
      const reference = { model: against, path: referencePath };
      const watch = { signal, onProgress: bar.update };
      const document = await agreementOf(runs, tokenizers, reference, options, watch);
      if (options.report !== undefined) await writeReport(options.report, document);
      const { bold, dim } = terminal.out;
      const lines = [`${bold(printable(path))}  ${dim(modelSummary(model))}`, '', ...agreementLines(document)];
      return { document: { ...document }, lines };
    } finally {
      bar.stop();
    }
  }
  const { tokens, file } = await openTokens(quantizer, tokenizers, options, signal);
  await using _ = file;
  await checkReportPath(options, [...(await modelPaths(path, model)), ...(file ? await modelPaths(given, file) : [])]);
  const bar = new ProgressBar(terminal);
  try {
    const found = await runs.evaluate({
      tokens,
      ...(options.activations !== undefined && { activations: options.activations }),
      ...(options.tensor !== undefined && { tensor: options.tensor }),
      ...(against && { against }),
      ...(options.scored !== undefined && { scored: options.scored }),
      ...(options.bytesPerToken !== undefined && { bytesPerToken: options.bytesPerToken }),
      signal,
      onProgress: bar.update,
    });
    const document = { ...found, data: given, ...(referencePath !== undefined && { against: referencePath }) };
    if (options.report !== undefined) await writeReport(options.report, document);
    const names = { given, against: referencePath };
    return { document, lines: evaluationLines(path, modelSummary(model), found, names, context) };
  } finally {
    bar.stop();
  }
}
