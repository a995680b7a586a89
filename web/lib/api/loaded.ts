// Parts of the library that are loaded on first use.

import { failure, textOf } from './errors.js';

/** `part`: an import(), which service workers forbid, and which fails when a deployment has replaced the files. Errors: engine-unavailable. */
export async function loaded<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch (error) {
    const detail = `a part of the library cannot be loaded: ${textOf(error)}; in a service worker import wasmquant/service-worker`;
    throw failure('engine-unavailable', '', detail, error);
  }
}
