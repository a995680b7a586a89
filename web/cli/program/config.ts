import { type Command, Option } from 'commander';
import type { Dialect } from '../../lib/node.js';
import { addOutputOptions } from './options.js';
import type { Start } from './start.js';

const kDialects: Dialect[] = ['quark', 'brevitas', 'aihwkit', 'compressed-tensors', 'gptq', 'awq'];
const kFileArgument = 'config file (JSON, also a config.json with quantization_config); - reads stdin';

export function addConfig(program: Command, start: Start): void {
  const config = program.command('config').description('check, convert and list configs');
  addOutputOptions(
    config
      .command('check')
      .description('list all problems of a config, without a model')
      .argument('<file>', kFileArgument),
  ).action((file, options) => start('checkConfig', [file], options));
  addOutputOptions(
    config
      .command('convert')
      .description('convert a config to another dialect and list what is lost')
      .argument('<file>', kFileArgument)
      .addOption(new Option('--to <dialect>', 'target dialect').choices(kDialects).makeOptionMandatory()),
  ).action((file, options) => start('convertConfig', [file], options));
  addOutputOptions(
    config
      .command('presets')
      .description('list the ready-made configs that most people choose from, or print one')
      .argument('[name]', 'preset to print as JSON')
      .option('-a, --all', 'list every one'),
  ).action((name, options) => start('presets', [name], options));
}
