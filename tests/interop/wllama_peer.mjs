// wllama, llama.cpp's WebAssembly build for pages: from npm, into the folder WASMQUANT_WLLAMA_PEERS, or .peers-wllama.
import { join } from 'node:path';
import { npmPeers } from '../setup/npm_peers.mjs';

const folder = process.env.WASMQUANT_WLLAMA_PEERS ?? npmPeers('.peers-wllama', { '@wllama/wllama': '3.8.1' });

/** The package's folder. */
export const wllama = join(folder, 'node_modules/@wllama/wllama');
