// Runs a job part by part, in workers or, with 0 threads, in the caller's thread.

import { runCalibration } from './calibration_job.js';
import { compareTiles } from './compare_job.js';
import { runDistribution } from './distribution_job.js';
import { runDivergence } from './divergence_job.js';
import { runContinuation, runEmbedding, runForward } from './forward_job.js';
import type { JobHost } from './job_host.js';
import type { Job, JobKind, JobKinds, JobPart, JobResult } from './jobs.js';
import { runObservation } from './observation_job.js';
import { runPlan } from './plan_job.js';
import { observeAndQuantizeTiles, observeTiles, quantizeTiles } from './quantize_job.js';
import { runSensitivity } from './sensitivity_job.js';

type Handler<K extends JobKind> = (host: JobHost, work: JobKinds[K]['work']) => Promise<JobKinds[K]['result']>;

const handlers: { readonly [K in JobKind]: Handler<K> } = {
  observe: observeTiles,
  run: quantizeTiles,
  'observe-and-run': observeAndQuantizeTiles,
  compare: compareTiles,
  distribution: runDistribution,
  forward: runForward,
  embed: runEmbedding,
  divergence: runDivergence,
  continue: runContinuation,
  'observe-inputs': runObservation,
  calibrate: runCalibration,
  sensitivity: runSensitivity,
  plan: runPlan,
};

function runPart<K extends JobKind>(host: JobHost, part: JobPart<K>): Promise<JobKinds[K]['result']> {
  return handlers[part.kind](host, part);
}

export async function runJob(host: JobHost, job: Job): Promise<JobResult> {
  const parts: JobResult['parts'] = [];
  try {
    for (const part of job.parts) parts.push(await runPart(host, part));
  } catch (error) {
    await host.settle().catch(() => {}); // files may be closed after this
    throw error;
  }
  await host.settle();
  return { parts, ...host.written() };
}
