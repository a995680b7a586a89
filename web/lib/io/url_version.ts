// What a server says of a file with each part that it sends: where the part lies, how large the file is, and which version it is of.
// Header fields: RFC 9110, sections 8.8 (validators), 13.1.5 (If-Range) and 14.4 (Content-Range).

/** Of the first answer; later ones must agree. */
export interface UrlVersion {
  /** Bytes of the file. */
  size: number;
  etag: string | null;
  lastModified: string | null;
}

/** First and last byte of the part, and the file's size; NaN where the server sends `*`. Null without the field. */
function contentRangeOf(response: Response): { first: number; last: number; size: number } | null {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/i.exec(response.headers.get('content-range')?.trim() ?? '');
  return match ? { first: Number(match[1]), last: Number(match[2]), size: Number(match[3]) } : null;
}

/** The version that a 206 answer is of; null if it does not tell the size, or hides it from other origins. */
export function versionOf(response: Response): UrlVersion | null {
  const { size } = contentRangeOf(response) ?? { size: Number.NaN };
  if (!Number.isSafeInteger(size)) return null;
  return { size, etag: response.headers.get('etag'), lastModified: response.headers.get('last-modified') };
}

/** Weak and strong tags of one version differ in their prefix; servers change it when they compress. */
const opaque = (etag: string) => etag.replace(/^W\//, '');

/** Why a 206 answer to bytes `[first, end)` of `version` cannot be used; null if it can. A shorter part can. */
export function refusalOf(response: Response, version: UrlVersion, first: number, end: number): string | null {
  const range = contentRangeOf(response);
  if (range === null || range.first !== first || range.last >= end || range.last < first) {
    const found = response.headers.get('content-range') ?? 'no Content-Range';
    return `the server sent ${found} for bytes ${first}-${end - 1}`;
  }
  if (range.size !== version.size && !Number.isNaN(range.size))
    return `the file changed during the run (${version.size} bytes, now ${range.size})`;
  const etag = response.headers.get('etag');
  const lastModified = response.headers.get('last-modified');
  if (version.etag !== null && (etag === null || opaque(etag) !== opaque(version.etag)))
    return `the file changed during the run (ETag ${version.etag}, now ${etag ?? 'none'})`;
  if (version.etag === null && lastModified !== version.lastModified)
    return `the file changed during the run (Last-Modified ${version.lastModified ?? 'none'}, now ${lastModified ?? 'none'})`;
  return null;
}

/** If-Range, so that a changed file is sent whole, with status 200. Pages do not send it: across origins it costs a request more, which many
 * servers refuse. */
export function conditionOf({ etag, lastModified }: UrlVersion): Record<string, string> {
  if (globalThis.location !== undefined) return {};
  const validator = etag !== null && !etag.startsWith('W/') ? etag : etag === null ? lastModified : null;
  return validator === null ? {} : { 'If-Range': validator };
}
