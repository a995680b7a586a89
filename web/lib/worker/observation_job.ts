// Observes the inputs of linear layers, in as many passes as the observers need.

import type { FoundActivations } from '../engine/forward_module.js';
import { loadStep, runPortions, withPass } from './forward_job.js';
import type { JobHost } from './job_host.js';
import type { InputObservation } from './jobs.js';

export function runObservation(host: JobHost, work: InputObservation): Promise<FoundActivations> {
  const { instance } = host;
  return instance.withObject(
    (module) => module.ActivationObserver.make(work.requests),
    async (observer) => {
      do {
        await withPass(host, work, async (pass) => {
          instance.run(() => observer.watch(pass.bound));
          for (const [number, step] of work.steps.entries()) {
            await loadStep(host, pass, number, step);
            if (!step.tensors.some(({ streamed }) => streamed)) await runPortions(host, pass);
          }
        });
      } while (instance.flag(() => observer.nextPass()));
      return instance.call<FoundActivations>(() => observer.finish());
    },
  );
}
