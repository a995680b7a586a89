import type { Command } from 'commander';
import { onnxRuntimeOfUser } from '../onnx_runtime/name.js';
import { addOutputOptions, addReportOptions, addResourceOptions, kModelArgument, kStripPrefix } from './options.js';
import type { Start } from './start.js';

export function addCompare(program: Command, start: Start): void {
  const command = program
    .command('compare')
    .description('error per tensor between two models of any formats, worst first')
    .argument('<reference>', kModelArgument)
    .argument('<quantized>', 'the same')
    .addOption(kStripPrefix)
    .option('-a, --all', 'every tensor, including those without an error')
    .option('--outputs', `ONNX: also the outputs of both on made-up inputs, with ${onnxRuntimeOfUser}`)
    .option('--feeds <file>', 'the same on these inputs: .npz or safetensors arrays named like them')
    .option('--measure-speed', 'ONNX: also the time of a run of both, in turns, with the same runtime');
  addOutputOptions(addReportOptions(addResourceOptions(command), 'an existing report')).action(
    (reference, quantized, options) => start('compare', [reference, quantized], options),
  );
}
