// The host of pages and web workers: the module and the worker's script lie next to the library.

import { compileUrl, type Host, portableHost, portOf } from './host.js';

export const browserHost: Host = {
  ...portableHost,
  compile: (url) => compileUrl(url ?? new URL('../wasmquant.wasm', import.meta.url)),
  startWorker: (url) =>
    portOf(
      url
        ? new Worker(url, { type: 'module' })
        : new Worker(new URL('../worker/worker.js', import.meta.url), { type: 'module' }), // as bundlers recognize it
    ),
};
