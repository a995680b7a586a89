// `wasmquant quantize --calibration`: activations or tokens, as the tensors of the file say.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTensors, writeFloats } from '../../interop/safetensors_file.mjs';
import { configOf, reference, smallModel, tensorOf, whole } from '../calibration/activation_batches.mjs';
import { scratchFolder, tinyLlama } from '../scratch.mjs';

test('the command line derives the activations from the tensors of the file', (t) => {
  const folder = scratchFolder(t);
  const cli = join(import.meta.dirname, '../../../dist/cli.js');
  const activations = join(folder, 'activations.safetensors');
  writeFloats(activations, new Map(whole.map((batch) => [`${batch.layer}.${batch.role}`, batch])));
  const config = join(folder, 'config.json');
  const run = (...args) =>
    execFileSync(process.execPath, [cli, 'quantize', ...args, '--json'], {
      input: JSON.stringify(configOf({ input_tensors: tensorOf('int8') })),
    });
  run(smallModel(t), '-o', join(folder, 'small'), '-c', '-', '--calibration', activations);
  assert.ok(readTensors(join(folder, 'small/model.safetensors')).has('mlp.up_proj.input_scale'), config);
  run(tinyLlama, '-o', join(folder, 'llama'), '-c', '-', '--calibration', join(reference, 'calib_tokens.safetensors'));
  const stored = readTensors(join(folder, 'llama/model.safetensors'));
  assert.ok(stored.has('model.layers.3.mlp.down_proj.input_scale'));
});
