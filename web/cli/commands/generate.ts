/** `wasmquant generate <model> --prompt TEXT`: a greedy continuation. */
import type { Command } from 'commander';
import { createQuantizer } from '../../lib/node.js';
import { durationText, plural } from '../../present/units.js';
import { addOutputOptions, addResourceOptions, quantizerOptions, type ResourceOptions } from '../args.js';
import { kModelArgument, kSource, kStripPrefix, type ModelFlags, openModel } from '../model_source.js';
import type { Context, Outcome, Run } from '../outcome.js';
import { ProgressBar } from '../progress.js';
import { printable } from '../terminal.js';
import { openTokenizer, parseCount } from '../token_source.js';

interface GenerateCommand extends ResourceOptions, ModelFlags {
  prompt: string;
  count: number;
  source?: string;
}

async function generate({ signal, terminal }: Context, path: string, options: GenerateCommand): Promise<Outcome> {
  const { prompt: text, count } = options;
  await using quantizer = await createQuantizer(quantizerOptions(options));
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

export function addGenerate(program: Command, run: Run): void {
  const command = program
    .command('generate')
    .description('continue a prompt with a language model, quantized or not (greedy decoding)')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .requiredOption('--prompt <text>', "start of the text, tokenized with the model's tokenizer.json")
    .addOption(kSource)
    .option('--count <n>', 'maximum number of tokens to generate', parseCount, 32);
  addOutputOptions(addResourceOptions(command)).action((model: string, options: GenerateCommand) =>
    run(options, (context) => generate(context, model, options)),
  );
}
