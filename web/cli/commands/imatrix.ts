/** `wasmquant imatrix <model> --text F -o FILE`: importance of the layers' inputs, in llama-imatrix's formats. */
import { basename } from 'node:path';
import { bytesText } from '../../present/units.js';
import { quantizerOptions, type ResourceOptions } from '../args.js';
import { type ModelFlags, modelSummary, openModel } from '../model_source.js';
import type { Context, Outcome } from '../outcome.js';
import { startQuantizer } from '../quantizer.js';
import { checkReportPath, modelPaths, writeWhole } from '../report_file.js';
import { printable } from '../terminal.js';
import { openTokens, type TokenOptions } from '../token_source.js';

interface ImatrixOptions extends ResourceOptions, TokenOptions, ModelFlags {
  output: string;
  source?: string;
  outputFormat?: 'gguf' | 'dat';
  force?: boolean;
}

export async function imatrix(
  { signal, terminal }: Context,
  [path]: [string],
  options: ImatrixOptions,
): Promise<Outcome> {
  const { output, tensor } = options;
  const file = { report: output, force: options.force === true };
  const texts = options.tokens ?? options.text ?? '';
  await checkReportPath(file, [path, texts], '--output');
  await using quantizer = await startQuantizer(quantizerOptions(options));
  await using model = await openModel(quantizer, path, signal, options);
  await using source = options.source === undefined ? null : await openModel(quantizer, options.source, signal);
  const { tokens, file: tokenFile } = await openTokens(quantizer, source ? [source, model] : [model], options, signal);
  await using _ = tokenFile;
  const inputs = [...(await modelPaths(path, model)), ...(tokenFile ? await modelPaths(texts, tokenFile) : [])];
  await checkReportPath(file, inputs, '--output');
  const format = options.outputFormat ?? (/\.dat$/i.test(output) ? 'dat' : 'gguf');
  const bytes = await quantizer.languageModel(model, source ? { source } : {}).importance({
    calibration: { tokens, ...(tensor !== undefined && { tensor }) },
    format,
    dataset: basename(texts),
    signal,
  });
  await writeWhole(output, bytes);
  return {
    document: { output, format, bytes: bytes.byteLength },
    lines: [
      `${terminal.out.bold(printable(path))} → ${terminal.out.bold(printable(output))}  ${terminal.out.dim(modelSummary(model))}`,
      `importance matrix, ${bytesText(bytes.byteLength)}`,
      terminal.out.dim(
        `wasmquant quantize ${printable(path)} --preset q4_k_m --imatrix ${printable(output)} -o OUT.gguf`,
      ),
    ],
  };
}
