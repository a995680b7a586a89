// Models and configs of runs, and what a run wrote, briefly.

export const int4 = 'int4_wo_32';

/** Number of bytes and a hash, so that a difference is printed briefly. */
export async function digest(bytes) {
  return `${bytes.length} ${Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')}`;
}
