/** `wasmquant auto <model> --tokens F --target-bits N -o config.json`: a config that spends a bit budget where it helps most. */
import type { AutoConfig, AutoConfigOptions, AutoLayer, OutputFormat } from '../../lib/node.js';
import { specText } from '../../present/spec_text.js';
import { bytesText } from '../../present/units.js';
import { type InclusionFlags, inclusions, quantizerOptions, type ResourceOptions } from '../args.js';
import { type ModelFlags, modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { startQuantizer } from '../quantizer.js';
import { checkReportPath, modelPaths, writeReport } from '../report_file.js';
import { table } from '../tables.js';
import { printable } from '../terminal.js';
import { openTokens, type TokenOptions } from '../token_source.js';
import { totalsText } from './plan.js';

interface AutoOptions extends ResourceOptions, TokenOptions, InclusionFlags, ModelFlags {
  targetBits?: number;
  targetBpw?: number;
  targetBytes?: number;
  targetSize?: number;
  maxLoss?: number;
  source?: string;
  format?: OutputFormat;
  exclude?: string[];
  output?: string;
  force?: boolean;
}

function autoLines(
  argument: string,
  text: string,
  found: AutoConfig,
  options: AutoOptions,
  context: Context,
): string[] {
  const { out: colors, columns } = context.terminal;
  const chosen = ({ choices, chosen }: AutoLayer) => choices[chosen] ?? { bytes: 0, loss: 0 };
  const lowest = ({ choices }: AutoLayer) => Math.max(...choices.map((choice) => choice?.loss ?? 0));
  const rows = [...found.layers].sort((a, b) => lowest(b) - lowest(a));
  const flags = [
    options.includeTowers && ' --include-towers',
    options.includeExperts && ' --include-experts',
    options.excludeExperts && ' --exclude-experts',
  ];
  const best = found.measuredLoss === undefined ? '' : ' --best --calibration TEXT';
  const quantize = `wasmquant quantize ${printable(argument)} --config ${printable(options.output ?? 'config.json')}${best}${flags.filter(Boolean).join('')} -o OUT`;
  return [
    `${colors.bold(printable(argument))}  ${colors.dim(text)}`,
    '',
    ...table(
      rows,
      [
        { title: 'layer', cell: (layer) => layer.name.replace(/\.weight$/, '') },
        { title: 'spec', cell: ({ chosen }) => specText(found.candidates[chosen] ?? { dtype: 'int8' }) },
        { title: 'size', align: 'right', cell: (layer) => bytesText(chosen(layer).bytes), spare: 1 },
        { title: 'loss', align: 'right', cell: (layer) => chosen(layer).loss.toExponential(1) },
        { title: 'at worst', align: 'right', cell: (layer) => lowest(layer).toExponential(1), spare: 2 },
      ],
      { colors, columns },
    ),
    '',
    colors.bold(totalsText(found.totals)),
    `sum of losses ${found.loss.toExponential(2)}`,
    ...(found.measuredLoss === undefined
      ? []
      : [`KLD with all of them, rounded to nearest: ${found.measuredLoss.toExponential(2)}; algorithms make it less`]),
    ...(options.output === undefined ? [] : ['', colors.dim(quantize)]),
  ];
}

export async function auto(context: Context, [path]: [string], options: AutoOptions): Promise<Outcome> {
  const { signal, terminal } = context;
  const file = { ...(options.output !== undefined && { report: options.output }), force: options.force === true };
  const texts = options.tokens ?? options.text ?? '';
  await checkReportPath(file, [path, texts], '--output');
  await using quantizer = await startQuantizer(quantizerOptions(options));
  await using model = await openModel(quantizer, path, signal, options);
  await using source = options.source === undefined ? null : await openModel(quantizer, options.source, signal);
  const { tokens, file: tokenFile } = await openTokens(quantizer, source ? [source, model] : [model], options, signal);
  await using _ = tokenFile;
  await checkReportPath(
    file,
    [...(await modelPaths(path, model)), ...(tokenFile ? await modelPaths(texts, tokenFile) : [])],
    '--output',
  );
  const bar = new ProgressBar(terminal);
  const { targetBpw, targetBits = targetBpw, targetSize, targetBytes = targetSize } = options;
  const { maxLoss, format, exclude, tensor } = options;
  const given: AutoConfigOptions = {
    calibration: { tokens, ...(tensor !== undefined && { tensor }) },
    ...(targetBits !== undefined && { targetBits }),
    ...(targetBytes !== undefined && { targetBytes }),
    ...(maxLoss !== undefined && { maxLoss }),
    ...(format !== undefined && { format }),
    ...(exclude !== undefined && { exclude }),
    ...inclusions(options),
    signal,
    onProgress: bar.update,
  };
  try {
    const document = await quantizer.languageModel(model, source ? { source } : {}).autoConfig(given);
    if (options.output !== undefined) await writeReport(options.output, document.config);
    return { document, lines: autoLines(path, modelSummary(model), document, options, context) };
  } finally {
    bar.stop();
  }
}
