// Range requests. Dropped connections and busy servers are retried, keeping received bytes.

import { textOf } from '../api/errors.js';
import { conditionOf, refusalOf, type UrlVersion } from './url_version.js';

/** Waits before retries, in milliseconds; progress resets them. */
export const retryWaitsMs = [250, 1000, 4000];

/** A connection that is silent for so long counts as dropped. */
const silenceMs = 30_000;

/** Retrying would not help. */
class RefusedRange extends Error {}

const isBusy = (status: number) => status === 408 || status === 429 || status >= 500;

/** Aborts a request when nothing arrives for `silenceMs`. */
class Patience {
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }
  begin(): void {
    this.end();
    const reason = new Error(`nothing arrived for ${silenceMs / 1000} s`);
    this.#timer = setTimeout(() => this.#controller.abort(reason), silenceMs);
  }
  end(): void {
    clearTimeout(this.#timer);
  }
}

/** Fetches `[offset, offset + rest.byteLength)` into `rest`; calls `arrived` for every piece. */
async function fetchInto(
  url: string,
  offset: number,
  rest: Uint8Array,
  version: UrlVersion,
  own: Record<string, string>,
  arrived: (bytes: number) => void,
): Promise<void> {
  const patience = new Patience();
  patience.begin();
  try {
    const end = offset + rest.byteLength;
    const headers = { ...own, Range: `bytes=${offset}-${end - 1}`, ...conditionOf(version) };
    const response = await fetch(url, { headers, signal: patience.signal });
    const { body } = response;
    if (response.status !== 206 || !body) {
      await body?.cancel();
      const answer = `status ${response.status} ${response.statusText} instead of 206 Partial Content`;
      throw isBusy(response.status) ? new Error(answer) : new RefusedRange(answer);
    }
    const refusal = refusalOf(response, version, offset, end);
    if (refusal !== null) {
      await body.cancel();
      throw new RefusedRange(refusal);
    }
    let done = 0;
    const pieces = body.getReader();
    for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
      patience.begin();
      if (done + piece.value.byteLength > rest.byteLength) {
        await pieces.cancel();
        throw new RefusedRange('the server sent more than was asked for');
      }
      rest.set(piece.value, done);
      done += piece.value.byteLength;
      arrived(piece.value.byteLength);
    }
    if (done < rest.byteLength) throw new Error(`the connection ended after ${done} of ${rest.byteLength} bytes`);
  } finally {
    patience.end();
  }
}

/** Reads one range of a URL. `version`: what the first answer said; rejects if another one disagrees, if the server refuses, or after four
 * tries without progress. */
export async function readRange(
  url: string,
  offset: number,
  length: number,
  version: UrlVersion,
  headers: Record<string, string> = {},
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let done = 0;
  for (let tries = 0; done < length; ++tries) {
    const before = done;
    try {
      await fetchInto(url, offset + done, bytes.subarray(done), version, headers, (arrived) => {
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
