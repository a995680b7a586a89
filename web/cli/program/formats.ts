import type { Command } from 'commander';
import { addOutputOptions, kModelArgument } from './options.js';
import type { Start } from './start.js';

export function addFormats(program: Command, start: Start): void {
  const command = program
    .command('formats')
    .description('formats that are read and written; with a model: the outputs that it can have, with their sizes')
    .argument('[model]', kModelArgument);
  addOutputOptions(command).action((model, options) => start('formats', [model], options));
}
