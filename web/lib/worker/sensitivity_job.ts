// How much each linear layer suffers from each candidate, in a worker: block by block with the model's own float32
// activations; nothing is changed or written.

import type { Instance } from '../engine/instance.js';
import { type ForwardHost, loadStep, runPortions, setTokens } from './forward_job.js';
import type { SensitivityWork } from './protocol.js';

/** Of every task of `work.blocks` in order: relative squared error of the residual stream. */
export async function runSensitivity(
  instance: Instance,
  work: SensitivityWork,
  host: ForwardHost,
): Promise<Float64Array> {
  const pass = instance.run(
    (module) => new module.ForwardPass(work.config, JSON.stringify({ activations: 'float32' })),
  );
  const losses: number[] = [];
  try {
    const portions = setTokens(instance, pass, work);
    for (const [number, step] of work.steps.entries()) {
      const { name } = step;
      await loadStep(instance, pass, number, step, portions, host, () => {});
      const layers = work.blocks[number] ?? [];
      if (layers.length === 0) continue;
      const bytes = step.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
      const tasks = layers.reduce((sum, layer) => sum + layer.tasks.length, 0);
      const done = () => host.progress({ phase: 'calibrate', name, bytes: bytes / (portions + tasks), tensors: 0 });
      instance.call<null>(() => pass.beginSensitivity());
      await runPortions(instance, pass, portions, host, done);
      instance.call<null>(() => pass.finishSensitivity());
      for (const { slot, tasks } of layers) {
        for (const task of tasks) {
          await host.pause();
          losses.push(instance.call<number>(() => pass.sensitivity(slot, task)));
          done();
        }
      }
      host.progress({ phase: 'calibrate', name, bytes: 0, tensors: layers.length });
    }
    return Float64Array.from(losses);
  } finally {
    instance.free(pass);
  }
}
