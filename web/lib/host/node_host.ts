// Node's host: paths, worker threads, the module from disk.

import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { failure, textOf } from '../api/errors.js';
import type { HubOptions, Source } from '../api/types.js';
import { directoryFolder, listFolder } from '../io/folder.js';
import {
  filesOfFolder,
  filesOfIndex,
  filesOfList,
  filesOfSingle,
  isOnnxFolder,
  type ModelFiles,
} from '../io/model_files.js';
import { folderAround, kindOfPath, openNodeSource, pathFolder, pathOf } from '../io/node_source.js';
import { openPathTarget, openSharedFolder } from '../io/node_target.js';
import { openUrlModel, unplaced } from '../io/open_model.js';
import { isIndexName } from '../io/part_name.js';
import { isAddress, isDirectoryHandle } from '../io/source.js';
import { openTarget } from '../io/target.js';
import { nodeWorkerHost } from '../worker/node_tile_input.js';
import type { FromWorker, Port } from '../worker/protocol.js';
import { compileUrl, type Host } from './host.js';

async function compile(url: string | URL | undefined): Promise<WebAssembly.Module> {
  const path = pathOf(url ?? new URL('../wasmquant.wasm', import.meta.url));
  if (path === null) return compileUrl(url ?? '');
  try {
    return await WebAssembly.compile(await readFile(path));
  } catch (error) {
    throw failure('engine-unavailable', path, `${textOf(error)}; pass wasmUrl or wasmModule`, error);
  }
}

function workerPort(url: string | URL | undefined): Port {
  // Process flags such as --input-type must not apply to this script.
  const worker = new Worker(url ?? new URL('../worker/worker_node.js', import.meta.url), { execArgv: [] });
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    listen(message, died) {
      worker.on('message', (data: FromWorker) => message(data));
      worker.on('messageerror', () => died('a message could not be read'));
      worker.on('error', (error) => died(textOf(error)));
      worker.on('exit', (code) => died(`it ended with exit code ${code}`));
    },
    // Closes the thread's descriptors too.
    async terminate() {
      await worker.terminate();
    },
    hold: (alive) => (alive ? worker.ref() : worker.unref()),
  };
}

/** As ids of the hub are written; a name that ends in letters behind a dot is that of a file. */
const idPattern = /^[\w.-]+\/(?!.*\.[a-z]{2,}$)[\w.-]+$/i;

/** What is no path may be `org/model` on the hub. */
async function openPathModel(path: string, hub: HubOptions): Promise<ModelFiles> {
  if (idPattern.test(path) && !existsSync(path) && !existsSync(dirname(path))) return openUrlModel(`hf:${path}`, hub);
  if ((await kindOfPath(path)) === 'folder') return filesOfFolder(await pathFolder(path));
  const folder = { ...(await folderAround(path)), where: dirname(path) };
  if (isIndexName(path)) return filesOfIndex(folder, basename(path));
  const parent = dirname(resolve(path));
  const around = isOnnxFolder(basename(parent)) ? await pathFolder(dirname(parent)).catch(() => null) : null;
  return filesOfSingle(await openNodeSource(path, basename(path)), folder, around);
}

export const nodeHost: Host = {
  get cores() {
    return availableParallelism();
  },
  budgetBytes: 2 ** 30, // two workers calibrate a model of 135 million weights
  hasWorkers: true,
  workerHost: nodeWorkerHost,
  compile,
  startWorker: workerPort,
  async openModel(given, hub) {
    const plain = (source: Source) => unplaced(source, pathToFileURL);
    if (Array.isArray(given)) return filesOfList(await listFolder(given.map(plain), openNodeSource));
    const source = plain(given);
    if (isDirectoryHandle(source)) return filesOfFolder(await directoryFolder(source));
    const path = pathOf(source);
    if (path !== null) return openPathModel(path, hub);
    if (isAddress(source)) return openUrlModel(source, hub);
    return filesOfSingle(await openNodeSource(source, 'model.safetensors'), null, null);
  },
  async openTarget(target, overwrite, inputs, use) {
    if (typeof target === 'string' && use.isShared) return openSharedFolder(target, overwrite, inputs);
    if (typeof target === 'string') return openPathTarget(target, overwrite, inputs, use);
    if (use.isShared)
      throw failure('target-invalid', 'target', 'parts of a run are written to a folder; give its path');
    return openTarget(target, overwrite);
  },
  async scratch() {
    const folder = await mkdtemp(join(tmpdir(), 'wasmquant-'));
    const target = join(folder, 'model');
    // A folder is opened for its safetensors files.
    const whole = (names: readonly string[]) => names.find((name) => /\.(gguf|onnx)$/.test(name));
    const source = (names: readonly string[]) => join(target, whole(names) ?? '');
    return { target, source, remove: () => rm(folder, { recursive: true, force: true }) };
  },
  async mergeShards(folder, options) {
    const { mergeShards } = await import('../run/node_merge.js');
    return mergeShards(folder, options);
  },
};
