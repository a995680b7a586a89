/** `wasmquant generate <model> --prompt TEXT`: a greedy continuation. */
import { durationText, plural } from '../../present/units.js';
import { quantizerOptions, type ResourceOptions } from '../args.js';
import { type ModelFlags, openModel } from '../model_source.js';
import type { Context, Outcome } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { startQuantizer } from '../quantizer.js';
import { printable } from '../terminal.js';
import { openTokenizer } from '../token_source.js';

interface GenerateCommand extends ResourceOptions, ModelFlags {
  prompt: string;
  count: number;
  source?: string;
}

export async function generate(
  { signal, terminal }: Context,
  [path]: [string],
  options: GenerateCommand,
): Promise<Outcome> {
  const { prompt: text, count } = options;
  await using quantizer = await startQuantizer(quantizerOptions(options));
  await using model = await openModel(quantizer, path, signal, options);
  await using source = options.source === undefined ? null : await openModel(quantizer, options.source, signal);
  const tokenizer = await openTokenizer(
    source ? [source, model] : [model],
    'put it there, or name its folder with --source',
  );
  const bar = new ProgressBar(terminal);
  try {
    const given = { text, tokenizer, count, signal };
    const document = await quantizer
      .languageModel(model, source ? { source } : {})
      .generate({ ...given, onProgress: bar.update });
    const written = (document.text ?? '').split('\n').map(printable).join('\n');
    const facts = `${plural(document.tokens.length, 'token')}, ${durationText(document.durationMs)}`;
    return { document, lines: [`${terminal.out.bold(printable(text))}${written}`, '', terminal.out.dim(facts)] };
  } finally {
    bar.stop();
  }
}
