// Ranges of a URL. A connection that drops, and a server that is busy, are tried again; what has arrived is kept.

import { textOf } from '../api/errors.js';

/** Waits before further tries, in milliseconds. Whatever arrives starts them anew. */
export const retryWaitsMs = [250, 1000, 4000];

/** Trying again would give the same. */
class RefusedRange extends Error {}

const isBusy = (status: number) => status === 408 || status === 429 || status >= 500;

/** Fetches `[offset, offset + rest.byteLength)` into `rest`; tells `arrived` of every piece. */
async function fetchInto(
  url: string,
  offset: number,
  rest: Uint8Array,
  tag: string | null,
  arrived: (bytes: number) => void,
): Promise<void> {
  const response = await fetch(url, { headers: { Range: `bytes=${offset}-${offset + rest.byteLength - 1}` } });
  const { body } = response;
  if (response.status !== 206 || !body) {
    await body?.cancel();
    const answer = `status ${response.status} ${response.statusText} instead of 206 Partial Content`;
    throw isBusy(response.status) ? new Error(answer) : new RefusedRange(answer);
  }
  const now = response.headers.get('etag');
  if (tag !== null && now !== null && now !== tag) {
    await body.cancel();
    throw new RefusedRange(`the file changed during the run (ETag ${tag}, now ${now})`);
  }
  let done = 0;
  const pieces = body.getReader();
  for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
    if (done + piece.value.byteLength > rest.byteLength) {
      await pieces.cancel();
      throw new RefusedRange('the server sent more than was asked for');
    }
    rest.set(piece.value, done);
    done += piece.value.byteLength;
    arrived(piece.value.byteLength);
  }
  if (done < rest.byteLength) throw new Error(`the connection ended after ${done} of ${rest.byteLength} bytes`);
}

/**
 * One range of a URL. `tag` is the ETag seen first: another one means that the file changed meanwhile. Rejects when the
 * server refuses, or when nothing arrived in four tries.
 */
export async function readRange(url: string, offset: number, length: number, tag: string | null): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let done = 0;
  for (let tries = 0; done < length; ++tries) {
    const before = done;
    try {
      await fetchInto(url, offset + done, bytes.subarray(done), tag, (arrived) => {
        done += arrived;
      });
    } catch (error) {
      if (error instanceof RefusedRange) throw error;
      if (done > before) tries = 0;
      const wait = retryWaitsMs[tries];
      if (wait === undefined) throw new Error(`${textOf(error)}, ${retryWaitsMs.length + 1} times`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  return bytes;
}
