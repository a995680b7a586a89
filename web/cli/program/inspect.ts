import type { Command } from 'commander';
import { addOutputOptions, kModelArgument, kStripPrefix } from './options.js';
import type { Start } from './start.js';

export function addInspect(program: Command, start: Start): void {
  const command = program
    .command('inspect')
    .description('tensors, shapes, dtypes, sizes and inferred layer types of a model')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .option('-a, --all', 'one line per tensor instead of one per group of identical layers');
  addOutputOptions(command).action((model, options) => start('inspect', [model], options));
}
