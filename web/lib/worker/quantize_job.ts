// Tiles of one tensor: observed if its scales need it, then quantized and written.

import type { BoundTensorSession } from '../engine/module.js';
import { type JobHost, joined } from './job_host.js';
import type { QuantizeWork, TaskNumber, TileRange, TileResult } from './jobs.js';

/** Lends `use` a session of the task and its number of observe passes. */
function withSession(
  host: JobHost,
  { work, task }: TaskNumber,
  use: (session: BoundTensorSession, passes: number) => Promise<TileResult>,
): Promise<TileResult> {
  const { instance } = host;
  return instance.withObject(
    (module) => module.TensorSession.make(host.work(work), task),
    (session) =>
      use(
        session,
        instance.run(() => session.observePasses()),
      ),
  );
}

export function observeTiles(host: JobHost, work: QuantizeWork): Promise<TileResult> {
  return withSession(host, work, async (session, passes) => {
    await observe(host, session, work, passes);
    return { sums: new Float64Array(0), state: host.instance.bytes(() => session.state()) };
  });
}

export function quantizeTiles(
  host: JobHost,
  { state, ...work }: QuantizeWork & { state: Uint8Array | null },
): Promise<TileResult> {
  const { instance } = host;
  return withSession(host, work, async (session) => {
    if (state)
      instance.withBytes(state, (pointer) => instance.done(() => session.takeState(pointer, state.byteLength / 4)));
    return quantize(host, session, work, false);
  });
}

export function observeAndQuantizeTiles(host: JobHost, work: QuantizeWork): Promise<TileResult> {
  return withSession(host, work, async (session, passes) => {
    await observe(host, session, work, passes);
    const own = ownTiles(work);
    return quantize(host, session, own, isSingle(own));
  });
}

/** A single tile stays in the session's memory after observing and is not read again. */
const isSingle = ({ first, last }: Tiles) => last - first === 1;

type Tiles = Pick<TileRange, 'first' | 'last'>;

const ownTiles = ({ first, last, tiles }: QuantizeWork): Tiles => ({ first, last: Math.min(last, tiles) });

async function observe(host: JobHost, session: BoundTensorSession, work: QuantizeWork, passes: number): Promise<void> {
  const own = ownTiles(work);
  for (let pass = 1; pass <= passes; ++pass) {
    if (pass > 1) host.instance.done(() => session.nextPass());
    // Joined weights first, so that a single tile of its own is still in memory afterwards.
    if (pass === 1)
      await observeRange(host, session, { first: Math.max(work.first, work.tiles), last: work.last }, true);
    await observeRange(host, session, own, pass === 1 || !isSingle(own));
  }
}

async function observeRange(
  host: JobHost,
  session: BoundTensorSession,
  { first, last }: Tiles,
  reads: boolean,
): Promise<void> {
  for (let tile = first; tile < last; ++tile) {
    await host.pause();
    if (reads) await host.read(0, session, tile, last - tile - 1);
    host.instance.done(() => session.observe(tile));
  }
}

async function quantize(
  host: JobHost,
  session: BoundTensorSession,
  { first, last }: Tiles,
  isRead: boolean,
): Promise<TileResult> {
  const sums: Float64Array[] = [];
  for (let tile = first; tile < last; ++tile) {
    await host.pause();
    if (!isRead) await host.read(0, session, tile, last - tile - 1);
    sums.push(await host.write(host.instance.tile(() => session.run(tile))));
  }
  return { sums: joined(sums), state: null };
}
