import type { Command } from 'commander';
import {
  addConfigOptions,
  addFormatOption,
  addGgufOptions,
  addInclusionOptions,
  addOnnxOptions,
  addOutputOptions,
  kModelArgument,
  kStripPrefix,
} from './options.js';
import type { Start } from './start.js';

export function addPlan(program: Command, start: Start): void {
  const command = program
    .command('plan')
    .description('which tensor gets which spec and why, and how large the output will be; reads no weights')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix);
  addOutputOptions(
    addGgufOptions(addOnnxOptions(addInclusionOptions(addFormatOption(addConfigOptions(command))))).option(
      '-a, --all',
      'one line per tensor',
    ),
  ).action((model, options) => start('plan', [model], options));
}
