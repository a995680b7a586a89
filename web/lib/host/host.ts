// What the library needs of its host. browser_host.ts, node_host.ts and service_worker.ts are the hosts.

import { failure, textOf } from '../api/errors.js';
import { loaded } from '../api/loaded.js';
import type { HubOptions, MergeOptions, RunReport, Source, Target } from '../api/types.js';
import type { ModelFiles } from '../io/model_files.js';
import type { OutputTarget, TargetUse } from '../io/target.js';
import type { FromWorker, Port } from '../worker/protocol.js';
import { noOutput, openPortableInput, type WorkerHost } from '../worker/tile_input.js';

export interface Host {
  /** Logical processors. */
  readonly cores: number;
  /** Memory for all workers, if the caller does not say. */
  readonly budgetBytes: number;
  /** Whether workers can be started; if not, runs use this thread unless the caller asks for workers. */
  readonly hasWorkers: boolean;
  /** For jobs in this thread. */
  readonly workerHost: WorkerHost;
  /** Compiles wasmquant.wasm from `url`, by default from next to the library. Errors: engine-unavailable. */
  compile(url: string | URL | undefined): Promise<WebAssembly.Module>;
  startWorker(url: string | URL | undefined): Port;
  openModel(source: Source | Source[], hub: HubOptions): Promise<ModelFiles>;
  /** `inputs`: paths that the run reads. */
  openTarget(target: Target, overwrite: boolean, inputs: string[], use: TargetUse): Promise<OutputTarget>;
  mergeShards(folder: string, options: MergeOptions): Promise<RunReport>;
  /** A place for an output that is opened and then dropped. */
  scratch(): Promise<Scratch>;
}

export interface Scratch {
  readonly target: Target;
  /** What was written, for `open`; `names`: the files. */
  source(names: readonly string[]): Source | Source[];
  remove(): Promise<void>;
}

/** Chromium's and Firefox's words for a module that the page's policy forbids to compile. */
const policyWords = /unsafe-eval|CSP/i;

const compileAdvice = (error: unknown) =>
  policyWords.test(textOf(error))
    ? "add 'wasm-unsafe-eval' to script-src of the Content-Security-Policy"
    : 'check the network, or pass wasmUrl or wasmModule; a Content-Security-Policy must allow it in connect-src';

/** Compiled modules by address: a second quantizer needs no network. */
const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** Fetches and compiles, once for each address. Errors: engine-unavailable. */
export function compileUrl(url: string | URL): Promise<WebAssembly.Module> {
  const address = String(url);
  const known = compiled.get(address);
  if (known) return known;
  const module = fetchModule(url);
  compiled.set(address, module);
  module.catch(() => compiled.delete(address)); // to be tried again
  return module;
}

async function fetchModule(url: string | URL): Promise<WebAssembly.Module> {
  try {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`the server answered ${response.status} ${response.statusText}`);
    const isWasm = response.headers.get('content-type')?.startsWith('application/wasm') === true;
    // Streaming compilation requires the right MIME type, which many servers lack.
    return isWasm
      ? await WebAssembly.compileStreaming(response)
      : await WebAssembly.compile(await response.arrayBuffer());
  } catch (error) {
    throw failure('engine-unavailable', String(url), `${textOf(error)}; ${compileAdvice(error)}`, error);
  }
}

/** A started worker as the pool's port. */
export function portOf(worker: Worker): Port {
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    listen(message, died) {
      worker.onmessage = ({ data }: MessageEvent<FromWorker>) => message(data);
      worker.onmessageerror = () => died('a message could not be read');
      worker.onerror = (event) =>
        died(event.message || 'its script cannot be loaded: allow it in worker-src, pass workerUrl, or threads: 0');
    },
    terminate: async () => worker.terminate(),
    hold() {},
  };
}

/** What all hosts without a file system have in common. */
export const portableHost: Omit<Host, 'compile' | 'startWorker'> = {
  get cores() {
    return globalThis.navigator?.hardwareConcurrency ?? 1;
  },
  budgetBytes: 512 * 2 ** 20,
  get hasWorkers() {
    return typeof Worker !== 'undefined';
  },
  workerHost: { openInput: openPortableInput, openOutput: noOutput },
  async openModel(source, hub) {
    const { openModelFiles } = await loaded(import('../io/open_model.js')); // with the first model
    return openModelFiles(source, hub);
  },
  async openTarget(target, overwrite, _, { isShared }) {
    if (isShared) throw failure('target-invalid', 'target', 'parts of a run are written to a path, by Node');
    if (typeof target === 'string')
      throw failure('target-invalid', target, 'paths are for Node; give a stream or a handle here');
    const { openTarget } = await loaded(import('../io/target.js')); // with the first run
    return openTarget(target, overwrite);
  },
  async scratch() {
    return (await loaded(import('../io/memory_files.js'))).memoryScratch();
  },
  async mergeShards(folder) {
    throw failure('target-invalid', folder, 'parts of a run are merged in a folder on disk, by Node');
  },
};
