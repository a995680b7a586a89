import { type Command, Option } from 'commander';
import {
  addOutputOptions,
  addReportOptions,
  addResourceOptions,
  addTokenOptions,
  kModelArgument,
  kSource,
  kStripPrefix,
} from './options.js';
import type { Start } from './start.js';
import { parsePositive } from './values.js';

export function addEvaluate(program: Command, start: Start): void {
  const command = program
    .command('evaluate')
    .description(
      "perplexity and bits per byte of a language model, quantized or not, and its KLD to another; of an encoder, how well its embeddings agree with another's",
    )
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .option('--bytes-per-token <n>', 'bytes of text per token (default: counted with tokenizer.json)', parsePositive)
    .addOption(kSource)
    .option(
      '--against <model>',
      'the model it was made from: KLD, same top token and ln(PPL ratio); of encoders cosine and ranks of embeddings',
    )
    .addOption(
      new Option(
        '--scored <tokens>',
        'tokens that count (default: all; with --against the second half of each sequence)',
      ).choices(['all', 'second-half']),
    )
    .addOption(
      new Option(
        '--activations <precision>',
        'inputs of linear layers: int8 per token, as in W8A8, or gguf, rounded in blocks as GGUF files are run (default: float32; of GGUF with --against gguf)',
      ).choices(['float32', 'int8', 'gguf']),
    );
  addOutputOptions(addReportOptions(addResourceOptions(addTokenOptions(command)), 'an existing report')).action(
    (model, options) => start('evaluate', [model], options),
  );
}
