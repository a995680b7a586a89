import { type Command, Option } from 'commander';
import { onnxRuntimeOfUser } from '../onnx_runtime/name.js';
import { shortenHelp } from './help.js';
import {
  addConfigOptions,
  addFormatOption,
  addGgufOptions,
  addInclusionOptions,
  addOnnxOptions,
  addOutputOptions,
  addReportOptions,
  addResourceOptions,
  kModelArgument,
  kSource,
  kStripPrefix,
} from './options.js';
import type { Start } from './start.js';
import { parseShards } from './values.js';

/** Of `--help`. */
const kUsualOptions = [
  ...['output', 'preset', 'config', 'format', 'exclude', 'layer', 'calibration', 'best', 'resume'],
  ...['threads', 'memory', 'report', 'force', 'json', 'quiet'],
];

export function addQuantize(program: Command, start: Start): void {
  const command = program
    .command('quantize')
    .description('quantize the weights of a model and copy the rest of its folder')
    .argument('<model>', kModelArgument)
    .addOption(kStripPrefix)
    .option(
      '-o, --output <path>',
      'folder, or a single file such as out.safetensors or out.onnx (default: named after model and scheme, here)',
    );
  addConfigOptions(
    addGgufOptions(addOnnxOptions(addInclusionOptions(addFormatOption(command)))),
    '; several, such as q4_k_m,q8_0, become a file or folder each',
  )
    .addOption(
      new Option(
        '--calibration <file>',
        'text (.txt, .md), or a safetensors file with token ids [sequences, length], for algorithms, static inputs and the importance of GGUF types, or with activations <layer>.input, <layer>.output',
      ).conflicts('calibrationText'),
    )
    .addOption(kSource)
    .option('--calibration-text <file>', "text instead of token ids, through the model's tokenizer.json")
    .option('--best', 'the most accurate algorithms for this size: awq, gptq, least squares (needs --calibration)')
    .option('--text <file>', 'several presets: also the KLD of each to the model on this text (language models)')
    .option(
      '--measure-speed',
      `several presets, ONNX: also the error of the outputs and the time of a run, by ${onnxRuntimeOfUser}`,
    )
    .addOption(
      new Option(
        '--card',
        'also write README.md, a model card for the Hub, into the output folder or next to the file',
      ).conflicts('shards'),
    )
    .option('--resume', 'keep the finished files of an interrupted run into a folder and continue from there')
    .addOption(
      new Option(
        '--shards <part/parts>',
        'write only this part of the output shards, such as 1/8; when all parts are done: wasmquant merge-index',
      )
        .argParser(parseShards)
        .conflicts('resume'),
    );
  addReportOptions(addResourceOptions(command), 'existing output and report');
  shortenHelp(addOutputOptions(command), kUsualOptions).action((model, options) => start('quantize', [model], options));
}
