// Range requests. Dropped connections and busy servers are retried, keeping received bytes.

import { textOf } from '../api/errors.js';

/** Waits before retries, in milliseconds; progress resets them. */
export const retryWaitsMs = [250, 1000, 4000];

/** Retrying would not help. */
class RefusedRange extends Error {}

const isBusy = (status: number) => status === 408 || status === 429 || status >= 500;

/** Fetches `[offset, offset + rest.byteLength)` into `rest`; calls `arrived` for every piece. */
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

/** Reads one range of a URL. `tag`: the ETag seen first; another one means that the file has changed. Rejects if the
 * server refuses, or after four tries without progress. */
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
