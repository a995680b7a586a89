// Bundles the command line with its libraries into dist/cli.js. The library (dist/node.js, next to it) is external.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'rolldown';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

export default defineConfig({
  input: path('./main.ts'),
  platform: 'node',
  transform: { target: 'node20' },
  external: /^(\.\.\/)+lib\//,
  output: {
    file: path('../../dist/cli.js'),
    format: 'esm',
    banner: '#!/usr/bin/env node',
    paths: (id) => (id.endsWith('/lib/node.js') ? './node.js' : id),
  },
});
