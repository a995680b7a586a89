import { type Command, Option } from 'commander';
import {
  addOutputOptions,
  addResourceOptions,
  addTokenOptions,
  kModelArgument,
  kSource,
  kStripPrefix,
} from './options.js';
import type { Start } from './start.js';

export function addImatrix(program: Command, start: Start): void {
  const command = program
    .command('imatrix')
    .description('importance matrix of a language model, for quantize --imatrix')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .addOption(kSource)
    .requiredOption('-o, --output <file>', 'file to write')
    .addOption(
      new Option(
        '--output-format <name>',
        'GGUF, or .dat, as older programs read it (default: by the file name)',
      ).choices(['gguf', 'dat']),
    )
    .option('--force', 'replace an existing file');
  addOutputOptions(addResourceOptions(addTokenOptions(command))).action((model, options) =>
    start('imatrix', [model], options),
  );
}
