/** `wasmquant quantize <model> -o <out>`. */
import { dirname } from 'node:path';
import type { Quantizer } from '../../lib/node.js';
import type { Context, Outcome } from '../outcome.js';
import { checkReportPath, writeReport } from '../report_file.js';
import { cardFolderOf, checkCard, writeCard } from './quantize/card.js';
import { refuseMeasures } from './quantize/measure.js';
import { reportLines } from './quantize/report_lines.js';
import { configOf, type QuantizeOptions, runInto, schemeOf, usualOutput, withInputs } from './quantize/run.js';
import { namedPresets, quantizeSeveral } from './quantize/several.js';

export async function quantize(context: Context, [argument]: [string], options: QuantizeOptions): Promise<Outcome> {
  const several = namedPresets(options);
  if (several) return await quantizeSeveral(context, argument, options, several);
  refuseMeasures(options);
  const configsOf = (quantizer: Quantizer) => configOf(quantizer, options, context.signal);
  return await withInputs(context, argument, options, configsOf, async (inputs, config) => {
    const { quantizer, model, choices } = inputs;
    const output =
      options.output ?? usualOutput(model, await quantizer.plan(model, config, choices), argument, options);
    await checkReportPath(options, [output]);
    await checkCard(options, cardFolderOf(output));
    const done = await runInto(inputs, config, output, options, context);
    if (options.report !== undefined) await writeReport(options.report, done.report);
    const run = { ...done, scheme: schemeOf(options), measured: {} };
    const card = options.card
      ? await writeCard(argument, model, done.isFolder ? output : dirname(output), [run])
      : undefined;
    return {
      document: { ...done.report, output, ...(card && { card }) },
      lines: reportLines(argument, model, { ...done, card }, options.report, context),
    };
  });
}
