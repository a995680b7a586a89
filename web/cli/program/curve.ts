import { type Command, Option } from 'commander';
import { curveRuntimes } from '../../present/runtimes/table.js';
import { onnxRuntimeOfUser } from '../onnx_runtime/name.js';
import { addOutputOptions, addReportOptions, addResourceOptions, kModelArgument, kStripPrefix } from './options.js';
import type { Start } from './start.js';
import { parseCount } from './values.js';

const parseNames = (text: string) => text.split(',').map((name) => name.trim());

export function addCurve(program: Command, start: Start): void {
  const command = program
    .command('curve')
    .description('file size against loss for the schemes that a runtime reads, to choose one')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .addOption(
      new Option('--for <runtime>', 'where it will run (default: by the format of the model)').choices(curveRuntimes),
    )
    .option(
      '--schemes <names>',
      'presets to try, separated by commas (default: 7 or 8 that the runtime reads)',
      parseNames,
    )
    .option('--configs <files>', 'configs to compare with them, such as those of auto, separated by commas', parseNames)
    .addOption(
      new Option('--text <file>', 'language models: UTF-8 text whose bits per byte are measured').conflicts('tokens'),
    )
    .option('--tokens <file>', 'the same as token ids, in a safetensors file')
    .addOption(new Option('--length <n>', 'tokens per window of the text (default: 256)').argParser(parseCount))
    .option('--windows <n>', 'windows to measure (default: 8, and up to 32 until the ranking is certain)', parseCount)
    .option(
      '--feeds <file>',
      'ONNX: .npz or safetensors arrays named like the inputs (default: made up by type and shape)',
    )
    .option(
      '--measure-speed',
      `ONNX: also the time of a run of each scheme, in turns with the original, by ${onnxRuntimeOfUser}`,
    )
    .option('--svg <file>', 'also write the curve as a picture');
  addOutputOptions(addReportOptions(addResourceOptions(command), 'existing files')).action((model, options) =>
    start('curve', [model], options),
  );
}
