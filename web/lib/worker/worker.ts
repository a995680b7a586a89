// Entry of a browser worker (`wasmquant/worker`).

import { serveWorker } from './serve.js';

serveWorker();
