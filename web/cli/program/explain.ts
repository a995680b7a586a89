import type { Command } from 'commander';
import { addOutputOptions } from './options.js';
import type { Start } from './start.js';

export function addExplain(program: Command, start: Start): void {
  const command = program
    .command('explain')
    .description('what the code of an error, warning or note means, and what to do; all codes without CODE')
    .argument('[code]', 'such as pattern-unused');
  addOutputOptions(command).action((code, options) => start('explain', [code], options));
}
