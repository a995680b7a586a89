// Splits the memory budget (RSS of the process or tab; below 160 MiB it does not include the runtime itself, 45 MiB for Node):
//   1. the host: at most 160 MiB for Node with its workers' JavaScript heaps
//   2. per worker: at most 4 tiles (stored, float32, codes, observer), and two of 1 MiB in flight (tile_input.ts)
//   3. results waiting for a stream: as much as one worker's share
// Sizes change speed only: every tile size and thread count gives the same bytes.

import { failure } from '../api/errors.js';

const mebibyte = 1024 * 1024;

/** Smaller budgets do not fit one worker's engine and tiles. */
const minimumBudgetBytes = 64 * mebibyte;
const hostBytes = 160 * mebibyte;
/** A worker's JavaScript heap, compiled code and reads in flight. */
const workerBytes = 10 * mebibyte;
const tilesPerWorker = 4;

/** Input bytes of one tile. */
export interface TileSizes {
  /** Tiles of whole rows: small enough to stay in the L2 cache from reading to packing. */
  tileBytes: number;
  /** Tiles of whole columns, for transposed layouts: large, because each read is one short piece of a row. */
  columnTileBytes: number;
}

/** Tile sizes of comparisons, for any budget. */
export const comparedTiles: TileSizes = { tileBytes: mebibyte, columnTileBytes: 16 * mebibyte };

export interface MemoryPlan {
  /** Number of workers that fit; 0 = run in this thread. */
  threads: number;
  /** Memory of the host, and what is left for all workers, in bytes. */
  hostBytes: number;
  shareBytes: number;
  tiles: TileSizes;
  /** Input bytes of a job whose output the worker writes. */
  jobBytes: number;
  /** Input bytes of a job whose output is sent back. */
  transferJobBytes: number;
  /** Output bytes that may wait to be written. */
  waitingBytes: number;
}

const clamp = (value: number, low: number, high: number) => Math.max(low, Math.min(high, Math.floor(value)));

/** Errors: memory-budget if the budget is below {@link minimumBudgetBytes}; argument-invalid. */
export function planMemory(budgetBytes: number, wantedThreads: number): MemoryPlan {
  if (!Number.isSafeInteger(wantedThreads) || wantedThreads < 0 || wantedThreads > 256) {
    throw failure('argument-invalid', 'threads', `${wantedThreads} is not a whole number from 0 to 256`);
  }
  if (!Number.isSafeInteger(budgetBytes) || budgetBytes < minimumBudgetBytes) {
    const detail = `${budgetBytes} bytes; at least ${minimumBudgetBytes} (64 MiB) are needed`;
    throw failure('memory-budget', 'memoryBudgetBytes', detail);
  }
  const share = Math.max(budgetBytes - hostBytes, 16 * mebibyte);
  const perWorker = workerBytes + tilesPerWorker * mebibyte;
  const threads = Math.min(wantedThreads, Math.max(1, Math.floor(share / perWorker)));
  const workers = Math.max(1, threads);
  const columnTileBytes = clamp(share / (tilesPerWorker * (workers + 1)), mebibyte, 32 * mebibyte);
  const waitingBytes = clamp(share / (workers + 1), 4 * mebibyte, 64 * mebibyte);
  return {
    threads,
    hostBytes,
    shareBytes: share,
    tiles: { tileBytes: mebibyte, columnTileBytes },
    jobBytes: 64 * mebibyte,
    transferJobBytes: clamp(waitingBytes / workers, mebibyte, 16 * mebibyte),
    waitingBytes,
  };
}

/** Smallest share of a worker, in bytes; below it, calls cost more than balance gains. */
const minShareBytes = mebibyte;
/** Jobs per worker in a small run, so that all workers finish together. */
const jobsPerWorker = 4;

/** Tile and job sizes for a number of input bytes. */
export function sizesFor(
  memory: MemoryPlan,
  inputBytes: number,
): { workers: number; tiles: TileSizes; shareBytes: number } {
  const workers = Math.max(1, memory.threads);
  const shareBytes = Math.max(minShareBytes, Math.ceil(inputBytes / (workers * jobsPerWorker)));
  return { workers, tiles: memory.tiles, shareBytes };
}
