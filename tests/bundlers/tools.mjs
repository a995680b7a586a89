// The bundlers, pinned.
import { join } from 'node:path';
import { npmPeers } from '../setup/npm_peers.mjs';

const packages = { vite: '8.3.8', webpack: '5.112.2', 'webpack-cli': '7.3.1', esbuild: '0.28.2', rolldown: '1.3.2' };

/** Path of a bundler's command; installs them all when they are not there. */
export function bundler(name) {
  return join(npmPeers('.peers-bundlers', packages), 'node_modules/.bin', name);
}
