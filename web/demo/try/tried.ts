// What both models give for a picture or sound of the user's.
import { signal } from '@preact/signals';
import type { ComparedOutput } from 'wasmquant';
import { quantizer } from '../app/engine';
import { workerRuntime } from '../feeds/worker-runtime';
import { modelOf } from '../inspect/kept-model';
import { runJob } from '../quality/job';
import { keepOutputs } from '../result/outputs';
import type { FinishedRun } from '../run/runs';
import { feedOf, type Place, type RangeName } from './try-input';

export interface Tried {
  run: number;
  file: string;
  outputs: ComparedOutput[];
}

export const tried = signal<Tried | null>(null);
export const range = signal<RangeName>('unit');

export function tryFile(done: FinishedRun, place: Place, file: File): Promise<void> {
  return runJob('Trying it', async (signal, onProgress) => {
    const runtime = workerRuntime(signal);
    let feed: Awaited<ReturnType<typeof feedOf>>;
    try {
      feed = await feedOf(runtime.Tensor, place, file, range.value);
    } catch (error) {
      if (error instanceof DOMException && /EncodingError|InvalidStateError/.test(error.name))
        throw new Error(`This browser cannot decode ${file.name} as a ${place.kind}. Choose another file.`);
      throw error;
    }
    const outputs: ComparedOutput[] = [];
    const found = await quantizer.value!.compare(done.model, await modelOf(done), {
      ...{ runtime, feeds: [feed], measureSpeed: true, signal, onProgress },
      onOutput: (output) => outputs.push(output),
    });
    tried.value = { run: done.number, file: file.name, outputs };
    if (found.outputs) keepOutputs(done.number, found.outputs, true);
  });
}
