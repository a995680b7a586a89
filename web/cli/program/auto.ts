import { type Command, Option } from 'commander';
import {
  addFormatOption,
  addInclusionOptions,
  addOutputOptions,
  addResourceOptions,
  addTokenOptions,
  kModelArgument,
  kSource,
  kStripPrefix,
} from './options.js';
import type { Start } from './start.js';
import { parsePattern, parsePositive, parseSize } from './values.js';

export function addAuto(program: Command, start: Start): void {
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
    (model, options) => start('auto', [model], options),
  );
}
