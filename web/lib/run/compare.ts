// Error per tensor between two models: both are decoded to float32 tile by tile and compared.

import type { Diagnostic, PlannedTensor, Progress, Report } from '../api/types.js';
import { comparedTiles } from '../engine/memory.js';
import type { OpenedModel } from '../model/model.js';
import type { WorkItem } from '../pool/job_queue.js';
import { ProgressMeter } from '../pool/progress.js';
import { nonFiniteRemarks, tensorReport, totalsOf } from '../pool/report.js';
import { measureItems, type Workshop } from '../pool/workshop.js';

interface ComparisonJson {
  pairs: {
    name: string;
    left: string;
    right: string;
    tiles: number;
    bytes: number;
    report: PlannedTensor;
  }[];
  diagnostics: Diagnostic[];
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
  const [left, right] = [reference.indexFor(instance), quantized.indexFor(instance)];
  // Tiles of one fixed size: sums are taken per tile, and a report must not depend on the budget.
  const { pairs, diagnostics } = instance.call<ComparisonJson>((module) =>
    module.comparison(left, reference.configText, right, quantized.configText, JSON.stringify(comparedTiles)),
  );
  const items = pairs.map(
    (pair): WorkItem => ({
      name: pair.name,
      bytes: pair.bytes,
      tiles: pair.tiles,
      task: { left: pair.left, right: pair.right },
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
    [reference, quantized],
    items,
    { input: inputBytes, job: memory.jobBytes },
    options.signal,
    (done) => progress.advance(done),
  );
  progress.finish('read');
  const tensors = pairs.map((pair, item) => tensorReport(pair.report, schedule.error(item)));
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
