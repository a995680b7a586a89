// URLs and responses as FileSource: read by ranges, or downloaded once, counted as they arrive.

import { failure, QuantizationError, textOf } from '../api/errors.js';
import { blobSource, type FileSource, fileSource, nameOfUrl, type RemoteSource } from './file_source.js';
import { readRange, retryWaitsMs } from './range_read.js';
import { versionOf } from './url_version.js';

const notFetched = (url: URL, error: unknown) =>
  failure('source-invalid', url.href, `cannot be fetched: ${textOf(error)}`, error);

const isPacked = ({ headers }: Response) => (headers.get('content-encoding') ?? 'identity') !== 'identity';

/** Requests the first two bytes; the response tells the size. sirv, which serves the files of Vite and SvelteKit, reads `0-0` as `0-`.
 * A browser that has cached the whole file compressed cuts ranges out of the compressed bytes: its cache is bypassed and filled again. */
async function ask(url: URL, own: Record<string, string> = {}): Promise<Response> {
  const headers = { ...own, Range: 'bytes=0-1' };
  const response = await fetch(url, { headers });
  if (response.status !== 206 || !isPacked(response)) return response;
  await response.body?.cancel();
  return fetch(url, { headers, cache: 'reload' });
}

/** What to do about answers that people meet often. */
const advice: Record<number, string> = {
  401: ': the file needs a login or a token',
  403: ': access is not granted',
  404: ': there is no such file; check the address',
  429: ': too many requests; wait a few minutes',
};

const answered = ({ status, statusText }: Response) =>
  `the server answered ${status} ${statusText}${advice[status] ?? ''}`;

async function answers(url: URL): Promise<boolean> {
  try {
    await (await ask(url)).body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/** Asks for a file next to `neighbour`, which has answered before; retries failed connections. Null if the file fails
 * while `neighbour` answers: across origins, browsers report a 404 without CORS headers as a network error. */
async function askBeside(url: URL, neighbour: URL): Promise<Response | null> {
  const mayBeHidden = globalThis.location !== undefined && globalThis.location.origin !== url.origin;
  let isReachable = false;
  for (let tries = 0; ; ) {
    try {
      return await ask(url);
    } catch (error) {
      if (mayBeHidden && (await answers(neighbour))) {
        if (isReachable) return null;
        isReachable = true; // perhaps only again
        continue;
      }
      const wait = retryWaitsMs[tries++];
      if (wait === undefined) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/** `headers` go with every request, such as a token, which fetch does not carry to other origins; `refusal` has words for statuses.
 * A URL, read by ranges if the server answers 206, else downloaded once, up to `mostBytes`. Null for a missing file (404,
 * 410) next to `neighbour`. */
export async function openUrl(
  url: URL,
  neighbour: URL | null = null,
  mostBytes: number = wholeBytes,
  headers: Record<string, string> = {},
  refusal: (status: number) => string | null = () => null,
): Promise<FileSource | null> {
  const name = nameOfUrl(url);
  const isBeside = neighbour !== null && neighbour.href !== url.href;
  let response: Response | null;
  try {
    response = isBeside ? await askBeside(url, neighbour) : await ask(url, headers);
  } catch (error) {
    throw notFetched(url, error);
  }
  if (response === null) return null;
  if (!response.ok) {
    await response.body?.cancel();
    if (neighbour && (response.status === 404 || response.status === 410)) return null;
    throw failure('source-invalid', url.href, refusal(response.status) ?? answered(response));
  }
  if (response.status !== 206) return openResponse(response, name, mostBytes);
  const version = versionOf(response);
  await response.body?.cancel();
  if (version === null) {
    // Content-Range is hidden across origins unless the server exposes it; then the file is downloaded once.
    const whole = fetch(url, { headers }).catch((error) => {
      throw notFetched(url, error);
    });
    return openResponse(await whole, name, mostBytes);
  }
  const remote: RemoteSource = { kind: 'url', name, url: url.href, version, headers };
  const read = (offset: number, length: number) => readRange(url.href, offset, length, version, headers);
  const source = fileSource(name, version.size, remote, read);
  return version.etag === null ? source : { ...source, identity: `ETag ${version.etag}` };
}

/** Bytes of a body without Content-Length: it may never end. With a Content-Encoding the field counts packed bytes. */
const undeclaredBytes = 2 ** 28;
/** Bytes of any body: the host keeps it in memory, or where it keeps Blobs. */
const wholeBytes = 2 ** 33;

/** The whole body, of at most `mostBytes`. Errors: file-too-large, before or while it arrives. */
async function wholeBody(response: Response, where: string, mostBytes: number): Promise<Blob> {
  const packed = isPacked(response);
  const declared = Number((packed ? null : response.headers.get('content-length')) ?? Number.NaN);
  const limit = Math.min(mostBytes, Number.isNaN(declared) ? undeclaredBytes : wholeBytes);
  const kind = packed ? 'unpacked, of a compressed body' : Number.isNaN(declared) ? 'without a Content-Length' : '';
  const refused = (bytes: number) =>
    failure(
      'file-too-large',
      where,
      `${bytes} bytes ${kind} from a server that sends no ranges; at most ${limit} are downloaded. Download the file and open that`,
    );
  if (declared > limit) {
    await response.body?.cancel();
    throw refused(declared);
  }
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    bytes += piece.value.byteLength;
    pieces.push(piece.value);
    if (bytes <= limit) continue;
    await reader?.cancel();
    throw refused(bytes);
  }
  return new Blob(pieces);
}

/** The body of an answer, up to `mostBytes`. Errors: source-invalid, file-too-large. */
export async function openResponse(response: Response, name: string, mostBytes = wholeBytes): Promise<FileSource> {
  if (!response.ok) {
    throw failure('source-invalid', response.url || name, answered(response));
  }
  if (response.bodyUsed)
    throw failure('source-invalid', response.url || name, 'the body of this Response was read already');
  try {
    return blobSource(name, await wholeBody(response, response.url || name, mostBytes));
  } catch (error) {
    if (error instanceof QuantizationError) throw error;
    throw failure('source-invalid', response.url || name, `the download broke off: ${textOf(error)}`, error);
  }
}
