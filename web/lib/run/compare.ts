// Compares two models tensor by tensor: decodes both to float32, tile by tile.

import type { Diagnostic, PlannedTensor, Progress, Report } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import { comparedTiles } from '../engine/memory.js';
import type { HeapBytes } from '../engine/module.js';
import type { OpenedModel } from '../model/model.js';
import type { WorkItem } from '../pool/job_queue.js';
import { ProgressMeter } from '../pool/progress.js';
import { nonFiniteRemarks, tensorReport, totalsOf } from '../pool/report.js';
import { measureItems, type Workshop } from '../pool/workshop.js';

interface Comparison {
  /** Pair p has tasks 2p and 2p + 1 of `work`; `byColumns`: one has column tiles. */
  pairs: { name: string; tiles: number; bytes: number; byColumns: boolean; report: PlannedTensor }[];
  diagnostics: Diagnostic[];
  work: Uint8Array;
}

/** Uses a fixed tile size: sums are per tile, and a report must not depend on the budget. */
export function comparisonOf(instance: Instance, reference: OpenedModel, quantized: OpenedModel): Comparison {
  const [left, right] = [reference.indexFor(instance), quantized.indexFor(instance)];
  const { work, ...found } = instance.call<Omit<Comparison, 'work'> & { work: HeapBytes }>((module) =>
    module.comparison(left, reference.configText, right, quantized.configText, JSON.stringify(comparedTiles)),
  );
  return { ...found, work: instance.copyOut(work.pointer, work.bytes) };
}

const nothingCompared: Diagnostic = {
  severity: 'error',
  code: 'nothing-compared',
  where: '',
  message: 'the two models have no weight in common that can be compared',
  hint: 'give the model, and what was made of it',
};

export async function compareModels(
  workshop: Workshop,
  reference: OpenedModel,
  quantized: OpenedModel,
  options: { signal?: AbortSignal; onProgress?: (progress: Progress) => void },
): Promise<Report> {
  const started = performance.now();
  const { instance, memory } = workshop;
  options.signal?.throwIfAborted();
  const inputBytes = [...reference.files, ...quantized.files].reduce((sum, file) => sum + file.bytes, 0);
  const { pairs, diagnostics, work } = comparisonOf(instance, reference, quantized);
  const items = pairs.map(
    ({ name, bytes, tiles }, pair): WorkItem => ({
      name,
      bytes,
      tiles,
      task: { pair },
      merge: () => new Uint8Array(0),
    }),
  );
  const progress = new ProgressMeter(
    options.onProgress,
    pairs.length,
    items.reduce((sum, item) => sum + item.bytes, 0),
  );
  const schedule = await measureItems(
    workshop,
    { models: [reference, quantized], work: [work] },
    items,
    { input: inputBytes, job: memory.jobBytes },
    options.signal,
    (done) => progress.advance(done),
  );
  progress.finish('read');
  const tensors = pairs.map((pair, item) => tensorReport(pair.report, { error: schedule.error(item) }));
  if (tensors.length === 0) diagnostics.unshift(nothingCompared);
  return {
    format: null,
    tensors,
    files: quantized.files,
    totals: totalsOf(tensors),
    diagnostics: [...nonFiniteRemarks(tensors), ...diagnostics],
    durationMs: performance.now() - started,
    threads: memory.threads,
  };
}
