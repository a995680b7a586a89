import type { Command } from 'commander';
import { addOutputOptions, addResourceOptions, kModelArgument, kSource, kStripPrefix } from './options.js';
import type { Start } from './start.js';
import { parseCount } from './values.js';

export function addGenerate(program: Command, start: Start): void {
  const command = program
    .command('generate')
    .description('continue a prompt with a language model, quantized or not (greedy decoding)')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .requiredOption('--prompt <text>', "start of the text, tokenized with the model's tokenizer.json")
    .addOption(kSource)
    .option('--count <n>', 'maximum number of tokens to generate', parseCount, 32);
  addOutputOptions(addResourceOptions(command)).action((model, options) => start('generate', [model], options));
}
