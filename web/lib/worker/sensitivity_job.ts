// Measures each linear layer with each candidate, block by block, on the model's own float32 activations.

import { loadStep, type Pass, runPortions, withPass } from './forward_job.js';
import type { JobHost } from './job_host.js';
import type { ForwardStep, SensitivityWork } from './jobs.js';

/** For every task of `work.blocks` in order: relative squared error of the residual stream. */
export function runSensitivity(host: JobHost, work: SensitivityWork): Promise<number[]> {
  return withPass(host, work, async (pass) => {
    const losses: number[] = [];
    for (const [number, step] of work.steps.entries()) {
      await loadStep(host, pass, number, step);
      const layers = work.blocks[number] ?? [];
      if (layers.length > 0) losses.push(...(await measureBlock(host, pass, step, layers)));
    }
    return losses;
  });
}

function measureBlock(
  host: JobHost,
  pass: Pass,
  { name, tensors }: ForwardStep,
  layers: SensitivityWork['blocks'][number],
): Promise<number[]> {
  const { instance } = host;
  const bytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const pieces = pass.portions.length + layers.reduce((sum, layer) => sum + layer.tasks.length, 0);
  const done = () => host.progress({ phase: 'calibrate', name, bytes: bytes / pieces, tensors: 0 });
  return instance.withObject(
    (module) => new module.SensitivityProbe(pass.bound),
    async (probe) => {
      const losses: number[] = [];
      await runPortions(host, { bound: probe, portions: pass.portions }, done);
      for (const { slot, tasks } of layers) {
        for (const { work, task } of tasks) {
          await host.pause();
          losses.push(instance.number(() => probe.measure(slot, host.work(work), task)));
          done();
        }
      }
      host.progress({ phase: 'calibrate', name, bytes: 0, tensors: layers.length });
      return losses;
    },
  );
}
