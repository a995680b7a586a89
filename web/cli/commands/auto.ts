/** `wasmquant auto <model> --tokens F --target-bits N -o config.json`: a config that spends a bit budget where it helps most. */
import { type Command, Option } from 'commander';
import {
  type AutoConfig,
  type AutoConfigOptions,
  type AutoLayer,
  createQuantizer,
  type OutputFormat,
} from '../../lib/node.js';
import { specText } from '../../present/spec_text.js';
import { bytesText } from '../../present/units.js';
import {
  addFormatOption,
  addInclusionOptions,
  addOutputOptions,
  addResourceOptions,
  type InclusionFlags,
  inclusions,
  parsePattern,
  parseSize,
  quantizerOptions,
  type ResourceOptions,
} from '../args.js';
import { kModelArgument, kSource, kStripPrefix, type ModelFlags, modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome, Run } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { checkReportPath, modelPaths, writeReport } from '../report_file.js';
import { table } from '../tables.js';
import { printable } from '../terminal.js';
import { addTokenOptions, openTokens, parsePositive, type TokenOptions } from '../token_source.js';
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

async function auto(context: Context, path: string, options: AutoOptions): Promise<Outcome> {
  const { signal, terminal } = context;
  const file = { ...(options.output !== undefined && { report: options.output }), force: options.force === true };
  const texts = options.tokens ?? options.text ?? '';
  await checkReportPath(file, [path, texts], '--output');
  await using quantizer = await createQuantizer(quantizerOptions(options));
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

export function addAuto(program: Command, run: Run): void {
  const budgets = ['targetBits', 'targetBpw', 'targetBytes', 'targetSize', 'maxLoss'];
  const budget = (flags: string, text: string, parse: (text: string) => number = parsePositive) =>
    new Option(flags, text).argParser(parse).conflicts(budgets.filter((name) => name !== option(flags)));
  const option = (flags: string) => new Option(flags).attributeName();
  const command = program
    .command('auto')
    .description('choose a spec for every layer of a language model within a budget')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .addOption(kSource)
    .addOption(budget('--target-bits <n>', 'bits per quantized weight, with scales'))
    .addOption(budget('--target-bpw <n>', 'the same'))
    .addOption(budget('--target-bytes <n>', 'bytes of the whole output'))
    .addOption(budget('--target-size <size>', 'the same, such as 4.2G or 900M', parseSize))
    .addOption(budget('--max-loss <n>', "sum of the layers' losses; of GGUF the KLD that is measured, in nats"))
    .option(
      '-x, --exclude <glob>',
      'do not quantize these layers (repeatable; default: lm_head, in GGUF none)',
      parsePattern,
    )
    .option('-o, --output <file>', 'file for the config')
    .option('--force', 'replace an existing config');
  addOutputOptions(addResourceOptions(addInclusionOptions(addFormatOption(addTokenOptions(command))))).action(
    (model: string, options: AutoOptions) => run(options, (context) => auto(context, model, options)),
  );
}
