// Entry of a Node worker thread (`wasmquant/worker` under the `node` condition).

import { parentPort } from 'node:worker_threads';
import { nodeWorkerHost } from './node_tile_input.js';
import type { ToWorker } from './protocol.js';
import { JobServer } from './worker_server.js';

const server = new JobServer(nodeWorkerHost, (message, transfer) => parentPort?.postMessage(message, transfer));
parentPort?.on('message', (message: ToWorker) => void server.receive(message));
