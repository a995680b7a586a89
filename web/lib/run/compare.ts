// Compares two models tensor by tensor: decodes both to float32, tile by tile.

import { PlanReader, type PlanRow, type PlanRows } from '../api/plan_json.js';
import type { Comparison, Diagnostic, Progress } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import { comparedTiles } from '../engine/memory.js';
import type { OpenedModel } from '../model/model.js';
import type { WorkItem } from '../pool/job_queue.js';
import { ProgressMeter } from '../pool/progress.js';
import { nonFiniteRemarks, tensorReport, totalsOf } from '../pool/report.js';
import { measureErrors, type RunResources } from '../pool/run_resources.js';
import type { PairNumber } from '../worker/jobs.js';

/** A weight of both models. */
interface ComparedPair extends WorkItem {
  task: { compare: PairNumber };
  /** Whether one side has column tiles. */
  byColumns: boolean;
  report: PlanRow;
}

interface Pairs {
  pairs: ComparedPair[];
  diagnostics: Diagnostic[];
  /** Packed tasks, in pieces. */
  work: Uint8Array[];
}

/** Rows of the core, with a number for each in the other lists. */
interface PairRows extends PlanRows {
  tiles: number[];
  bytes: number[];
  byColumns: (0 | 1)[];
}

/** In one piece of packed work, and in one batch of rows. */
const pairsAtOnce = 256;

const merge = () => new Uint8Array(0);

/** Uses a fixed tile size: sums are per tile, and a report must not depend on the budget. */
export function comparisonOf(instance: Instance, reference: OpenedModel, quantized: OpenedModel): Pairs {
  const [left, right] = [reference.indexFor(instance), quantized.indexFor(instance)];
  const bound = instance.make((module) => module.Comparison.make(left, right, JSON.stringify(comparedTiles)));
  try {
    type Summary = { pairs: number; diagnostics: Diagnostic[] };
    const { pairs: count, diagnostics } = instance.call<Summary>(() => bound.summary());
    const reader = new PlanReader([], { withoutOutputs: true });
    const work: Uint8Array[] = [];
    const pairs: ComparedPair[] = [];
    for (let first = 0; first < count; first += pairsAtOnce) {
      const rows = instance.call<PairRows>(() => bound.pairs(first, first + pairsAtOnce));
      reader.add(rows);
      for (const [pair, report] of reader.tensors.splice(0).entries()) {
        const [tiles = 0, bytes = 0] = [rows.tiles[pair], rows.bytes[pair]];
        const task = { compare: { work: work.length, pair } };
        pairs.push({ name: report.name, bytes, tiles, task, merge, byColumns: rows.byColumns[pair] === 1, report });
      }
      work.push(instance.bytes(() => bound.pack(first, first + pairsAtOnce)));
    }
    return { pairs, diagnostics, work };
  } finally {
    instance.free(bound);
  }
}

const nothingCompared: Diagnostic = {
  severity: 'error',
  code: 'nothing-compared',
  where: '',
  message: 'the two models have no weight in common that can be compared',
  hint: 'pass the original model and the quantized one',
};

export async function compareModels(
  resources: RunResources,
  reference: OpenedModel,
  quantized: OpenedModel,
  options: { signal?: AbortSignal; onProgress?: (progress: Progress) => void },
): Promise<Comparison> {
  const started = performance.now();
  const { instance, memory } = resources;
  options.signal?.throwIfAborted();
  const { pairs, diagnostics, work } = comparisonOf(instance, reference, quantized);
  const progress = new ProgressMeter(
    options.onProgress,
    pairs.length,
    pairs.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  const schedule = await measureErrors(
    resources,
    { models: [reference, quantized], work, sendsByJob: true },
    pairs,
    { input: reference.bytes + quantized.bytes, job: memory.jobBytes },
    options.signal,
    (done) => progress.advance(done),
  );
  progress.finish('read');
  const tensors = pairs.map((pair, item) => tensorReport(pair.report, { error: schedule.error(item) }));
  if (tensors.length === 0) diagnostics.unshift(nothingCompared);
  return {
    tensors,
    files: quantized.files,
    totals: totalsOf(tensors, { bytesBefore: reference.bytes, bytesAfter: quantized.bytes }),
    diagnostics: [...nonFiniteRemarks(tensors), ...diagnostics],
    durationMs: performance.now() - started,
    threads: resources.pool.hasStandIn ? 0 : memory.threads,
  };
}
