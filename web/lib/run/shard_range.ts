// One part of a run shared by several machines: whole output shards, assigned by a rule that every machine derives from
// the plan. A part also leaves a record in `wasmquant-parts/`, the first part also config.json, the index and copied
// files; node_merge.ts joins all parts.

import { failure } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type {
  Diagnostic,
  FileSize,
  RunIdentity,
  RunReport,
  ShardPart,
  TensorError,
  TensorReport,
} from '../api/types.js';
import type { PlannedRun } from '../calibration/calibrate.js';
import type { OpenedModel } from '../model/model.js';
import type { PlannedFile } from '../plan/output_files.js';
import { infiniteError, totalsOf } from '../pool/report.js';
import { filesDigest, valuesDigest } from './run_identity.js';
import { type SmallFile, textFile } from './sidecar_files.js';

/** Folder in the output for files that are not final. */
export const partsFolder = 'wasmquant-parts';
export const recordVersion = 2;
export const recordName = ({ part, of }: ShardPart) => `${partsFolder}/${part}-of-${of}.json`;

/** A shard written by a part. `head`: SHA-256 of its first `headBytes`, which the plan determines. */
export interface WrittenShard {
  name: string;
  bytes: number;
  headBytes: number;
  head: string;
}

/** A part's record. `version` identifies the record format. */
export interface PartRecord extends ShardPart {
  version: typeof recordVersion;
  /** Of everything that determines the whole output, except the model's values, and of these. */
  plan: string;
  values: string;
  /** Of the whole output. */
  files: { name: string; bytes: number }[];
  totals: RunReport['totals'];
  shards: WrittenShard[];
  /** First part: files in `wasmquant-parts/` to move next to the shards, in this order. */
  small: { name: string; bytes: number }[];
  /** Of this part only; `order`: index of each of its tensors in the whole model. */
  report: RunReport;
  order: number[];
}

export interface PartOfRun {
  /** Task indexes in the plan. */
  items: ReadonlySet<number>;
  names: string[];
  /** Planned files, null for those of other parts. */
  own(files: PlannedFile[]): (PlannedFile | null)[];
  report(whole: RunReport): RunReport;
  /** Stages the small files and the record. */
  stage(small: SmallFile[], report: RunReport): Promise<SmallFile[]>;
}

/** Errors: argument-invalid. */
function checkPart({ part, of }: ShardPart): void {
  if (Number.isSafeInteger(of) && Number.isSafeInteger(part) && part >= 1 && part <= of) return;
  const detail = `part ${part} of ${of} does not exist: parts count from 1 to their number; add 1 to an index that counts from 0`;
  throw failure('argument-invalid', 'shards', detail);
}

/**
 * Assigns files by bytes of work: largest first, each to the first least-loaded part. Returns each file's part, from 0.
 */
export function dealOut(bytes: readonly number[], parts: number): number[] {
  const loads = Array.from({ length: Math.min(parts, bytes.length) }, () => 0);
  const part = bytes.map(() => 0);
  const order = bytes.map((size, file) => ({ size, file })).sort((a, b) => b.size - a.size || a.file - b.file);
  for (const { size, file } of order) {
    const least = loads.indexOf(Math.min(...loads));
    part[file] = least;
    loads[least] = (loads[least] ?? 0) + size;
  }
  return part;
}

export async function sha256(...pieces: (string | Uint8Array<ArrayBuffer>)[]): Promise<string> {
  const bytes = await new Blob(pieces).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function writtenShard({ name, bytes, literals }: PlannedFile): Promise<WrittenShard> {
  const head = literals[0]?.bytes ?? new Uint8Array();
  return { name, bytes, headBytes: head.byteLength, head: await sha256(head) };
}

/** Errors: argument-invalid, format-unsupported. */
function checkShardable({ run: { plan }, calibration }: PlannedRun): void {
  const { isWholeFile, splitsBySize } = formats.outputs[plan.format];
  if (isWholeFile && !splitsBySize) {
    const detail = `${plan.format} output is one file whose header lists every tensor; quantize it in one run, or write safetensors shards or GGUF`;
    throw failure('format-unsupported', 'shards', detail);
  }
  if (calibration) {
    const detail =
      'algorithms of this config go through the whole model, block by block, so a part would take as long as the whole; quantize it in one run, or remove them';
    throw failure('argument-invalid', 'shards', detail);
  }
}

/** Errors: argument-invalid, format-unsupported. */
export function partOf(
  model: OpenedModel,
  planned: PlannedRun,
  { library, tasks }: RunIdentity,
  which: ShardPart,
): PartOfRun {
  checkPart(which);
  checkShardable(planned);
  const { run } = planned;
  const { plan, items } = run;
  const numbers = new Map(plan.files.map(({ name }, file) => [name, file]));
  const fileOf = (tensor: number) => numbers.get(plan.tensors[tensor]?.outputs[0]?.file ?? '') ?? 0;
  const fileOfItem = (number: number) => fileOf(items[number]?.tensor ?? -1);
  const work = plan.files.map(() => 0);
  for (const [number, { bytes }] of items.entries()) {
    const file = fileOfItem(number);
    work[file] = (work[file] ?? 0) + bytes;
  }
  const dealt = dealOut(work, which.of);
  const isOwn = (file: number) => dealt[file] === which.part - 1;
  const own = (files: PlannedFile[]) => files.map((file, number) => (isOwn(number) ? file : null));
  const ownBytes = (files: FileSize[]) =>
    files.reduce((sum, { bytes }, number) => sum + (isOwn(number) ? bytes : 0), 0);
  // A shard of a checkpoint is made of the shard of the model with the same number; files that are cut anew have no such source.
  const bytesBefore = (tensors: TensorReport[]) =>
    formats.outputs[plan.format].splitsBySize
      ? tensors.reduce((sum, tensor) => sum + tensor.bytesBefore, 0)
      : ownBytes(model.files);
  const shards = own(run.files).filter((file) => file !== null);
  const order = [...plan.tensors.keys()].filter((tensor) => isOwn(fileOf(tensor)));
  return {
    items: new Set([...items.keys()].filter((number) => isOwn(fileOfItem(number)))),
    names: [...shards.map(({ name }) => name), recordName(which)],
    own,
    report(whole) {
      const tensors = order.flatMap((tensor) => whole.tensors[tensor] ?? []);
      const files = whole.files.filter(({ name }) => shards.some((shard) => shard.name === name));
      const sizes = { bytesBefore: bytesBefore(tensors), bytesAfter: ownBytes(plan.files) };
      const totals = { ...totalsOf(tensors, sizes), coverage: whole.totals.coverage };
      return { ...whole, tensors, files, totals, shards: which };
    },
    async stage(small, report) {
      const record: PartRecord = {
        version: recordVersion,
        ...which,
        plan: `${library} ${tasks} ${filesDigest(run)}`,
        values: await valuesDigest(model),
        files: plan.files,
        totals: plan.totals,
        shards: await Promise.all(shards.map(writtenShard)),
        small: small.map(({ name, bytes }) => ({ name, bytes })),
        report,
        order,
      };
      const files = small.map((file) => ({ ...file, name: `${partsFolder}/${file.name}` }));
      return [...files, textFile(recordName(which), JSON.stringify(record))];
    },
  };
}

function measured(error: TensorError | null): TensorError | null {
  if (error?.nonFinite) return infiniteError(error.nonFinite);
  return error && { ...error, sqnrDb: error.sqnrDb ?? Number.POSITIVE_INFINITY };
}

/** The whole run's report from all records, in order. The duration is the longest part's. */
export function mergedReport(records: readonly PartRecord[]): RunReport {
  const [first] = records;
  if (!first) throw new RangeError('there is no part to merge');
  const placed = records.flatMap(({ report, order }) =>
    report.tensors.map((tensor, at) => ({ tensor, place: order[at] ?? 0 })),
  );
  placed.sort((a, b) => a.place - b.place);
  const diagnostics = new Map<string, Diagnostic>();
  for (const { report } of records) for (const each of report.diagnostics) diagnostics.set(JSON.stringify(each), each);
  return {
    format: first.report.format,
    tensors: placed.map(({ tensor }) => ({ ...tensor, error: measured(tensor.error) })),
    files: [...first.files, ...first.small],
    totals: first.totals,
    diagnostics: [...diagnostics.values()],
    identity: first.report.identity,
    durationMs: Math.max(...records.map(({ report }) => report.durationMs)),
    threads: records.reduce((sum, { report }) => sum + report.threads, 0),
  };
}
