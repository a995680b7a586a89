// Joins the parts of a shared run (shard_range.ts): checks that all exist, are complete and of the same plan, then
// moves the index, copied files and, last, config.json into place, which completes the model.

import { open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { failure, textOf } from '../api/errors.js';
import type { MergeOptions, RunReport } from '../api/types.js';
import { isPartial } from '../io/node_partial.js';
import { isInside, move } from '../io/node_placement.js';
import { leftovers } from '../io/node_target.js';
import { ProgressMeter } from '../pool/progress.js';
import {
  mergedReport,
  type PartRecord,
  partsFolder,
  recordName,
  recordVersion,
  sha256,
  type WrittenShard,
} from './shard_range.js';

const sizeOf = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => null,
  );

function listed(numbers: number[]): string {
  const shown = numbers.slice(0, 8).join(', ');
  return numbers.length > 8 ? `${shown} and ${numbers.length - 8} more` : shown;
}

async function readRecord(folder: string, name: string): Promise<PartRecord> {
  const invalid = (detail: string, cause?: unknown) =>
    failure('file-invalid', name, `${detail}; run this part again with --force`, cause);
  let record: PartRecord;
  try {
    record = JSON.parse(await readFile(join(folder, name), 'utf8')) as PartRecord;
  } catch (error) {
    throw invalid(`cannot be read: ${textOf(error)}`, error);
  }
  if (record?.version !== recordVersion)
    throw invalid(`is of version ${record?.version}, this library reads version ${recordVersion}`);
  const lists = [record.files, record.shards, record.small, record.order, record.report?.tensors];
  if (!lists.every(Array.isArray) || recordName(record) !== name) throw invalid('is not a record of that part');
  for (const { name: file } of [...record.files, ...record.shards, ...record.small])
    if (!isInside(file)) throw invalid(`names a file ${JSON.stringify(file)} outside its folder`);
  return record;
}

/** Records in part order, all of one plan. Errors: source-invalid, file-invalid. */
async function readRecords(folder: string): Promise<PartRecord[]> {
  const names = await readdir(join(folder, partsFolder)).catch((error: unknown) => {
    const detail = `has no ${partsFolder} (${textOf(error)}): no part of a run was written here, or its parts are merged already`;
    throw failure('source-invalid', folder, detail, error);
  });
  const found = names.flatMap((name) => {
    const [, part, of] = /^(\d+)-of-(\d+)\.json$/.exec(name) ?? [];
    return part && of ? [{ part: Number(part), of: Number(of) }] : [];
  });
  const counts = [...new Set(found.map(({ of }) => of))].sort((a, b) => a - b);
  const [of = 0] = counts;
  if (counts.length !== 1) {
    const detail =
      counts.length === 0
        ? 'no part has ended'
        : `holds parts of runs in ${counts.join(' and in ')} parts; remove the records of all but one`;
    throw failure('source-invalid', join(folder, partsFolder), detail);
  }
  const has = new Set(found.map(({ part }) => part));
  const missing = Array.from({ length: of }, (_, at) => at + 1).filter((part) => !has.has(part));
  if (missing.length > 0) {
    const detail = `${missing.length === 1 ? 'part' : 'parts'} ${listed(missing)} of ${of} ${missing.length === 1 ? 'is' : 'are'} missing: not ended yet, failed, or written elsewhere`;
    throw failure('source-invalid', join(folder, partsFolder), detail);
  }
  const records: PartRecord[] = [];
  for (let part = 1; part <= of; ++part) records.push(await readRecord(folder, recordName({ part, of })));
  for (const [key, what] of [
    ['plan', 'followed a different plan than part 1: config, options, calibration or version of this library differ'],
    ['values', 'was made from other weights than part 1'],
  ] as const) {
    const others = records.filter((record) => record[key] !== records[0]?.[key]).map(({ part }) => part);
    if (others.length > 0) {
      const detail = `part ${listed(others)} ${what}; run the parts again with the same`;
      throw failure('file-invalid', join(folder, partsFolder), detail);
    }
  }
  return records;
}

/** Errors: source-invalid, file-truncated, file-invalid. */
async function checkShard(folder: string, { name, bytes, headBytes, head }: WrittenShard, part: number): Promise<void> {
  const path = join(folder, name);
  const again = `run part ${part} again with --force`;
  const size = await sizeOf(path);
  if (size === null) throw failure('source-invalid', name, `is missing in ${folder}, part ${part} wrote it; ${again}`);
  if (size !== bytes) throw failure('file-truncated', name, `has ${size} bytes, part ${part} wrote ${bytes}; ${again}`);
  const file = await open(path);
  try {
    const known = new Uint8Array(headBytes);
    await file.read(known, 0, headBytes, 0);
    if ((await sha256(known)) === head) return;
  } finally {
    await file.close();
  }
  throw failure('file-invalid', name, `has another header than part ${part} wrote; ${again}`);
}

async function checkShards(folder: string, records: PartRecord[], { signal, onProgress }: MergeOptions): Promise<void> {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const tensors = sum(records.map(({ report }) => report.tensors.length));
  const bytes = sum(records.flatMap(({ shards }) => shards.map((shard) => shard.bytes)));
  const progress = new ProgressMeter(onProgress, tensors, bytes);
  for (const { shards, part, report } of records) {
    for (const shard of shards) {
      signal?.throwIfAborted();
      await checkShard(folder, shard, part);
      progress.advance({ phase: 'read', bytes: shard.bytes, tensors: 0 });
    }
    progress.advance({ phase: 'read', bytes: 0, tensors: report.tensors.length });
  }
  progress.finish('read');
  const written = new Set(records.flatMap(({ shards }) => shards.map(({ name }) => name)));
  const planned = records[0]?.files.map(({ name }) => name) ?? [];
  const missing = planned.find((name) => !written.has(name));
  if (missing !== undefined)
    throw failure('file-invalid', missing, 'belongs to no part; the records are not of one run');
  const [foreign] = leftovers(
    await readdir(folder),
    new Set([...planned, ...(records[0]?.small ?? []).map(({ name }) => name)]),
  );
  if (foreign !== undefined)
    throw failure('target-exists', foreign, 'is a weight file that is not of this run; remove it');
}

/** Moves the files prepared by part 1; continues an interrupted merge. */
async function placeSmallFiles(folder: string, { small }: PartRecord, overwrite: boolean): Promise<void> {
  const laid = await Promise.all(small.map(({ name }) => sizeOf(join(folder, partsFolder, name))));
  for (const [at, { name, bytes }] of small.entries()) {
    const there = await sizeOf(join(folder, name));
    if (laid[at] === bytes && there !== null && !overwrite)
      throw failure('target-exists', join(folder, name), 'exists already; remove it, or pass overwrite (--force)');
    if (laid[at] !== bytes && there !== bytes)
      throw failure(
        'source-invalid',
        name,
        `part 1 created it with ${bytes} bytes, but it has changed or is missing; run part 1 again with --force`,
      );
  }
  for (const [at, { name, bytes }] of small.entries())
    if (laid[at] === bytes) await move(join(folder, partsFolder, name), join(folder, name));
}

/** Removes partial folders of killed attempts; all shards are complete by now. */
async function removePartials(folder: string): Promise<void> {
  for (const found of await readdir(folder))
    if (isPartial(found)) await rm(join(folder, found), { recursive: true, force: true });
}

export async function mergeShards(folder: string, options: MergeOptions): Promise<RunReport> {
  const records = await readRecords(folder);
  const [first] = records;
  if (!first) throw failure('source-invalid', folder, 'holds no part of a run');
  await checkShards(folder, records, options);
  options.signal?.throwIfAborted();
  try {
    await placeSmallFiles(folder, first, options.overwrite ?? false);
    await removePartials(folder);
    await rm(join(folder, partsFolder), { recursive: true });
  } catch (error) {
    if (error instanceof Error && error.name === 'QuantizationError') throw error;
    throw failure('write-failed', folder, `the parts cannot be merged: ${textOf(error)}`, error);
  }
  return mergedReport(records);
}
