import type { Command } from 'commander';
import { addOutputOptions, addReportOptions } from './options.js';
import type { Start } from './start.js';

export function addMergeIndex(program: Command, start: Start): void {
  const command = program
    .command('merge-index')
    .description('merge the parts that quantize --shards wrote into one model')
    .argument('<folder>', 'folder with the output of all parts');
  addReportOptions(command, 'small files of the folder, and the report');
  addOutputOptions(command).action((folder, options) => start('mergeIndex', [folder], options));
}
