// Bundles the command line with its libraries: dist/cli.js, which starts dist/command.js in a thread of its own. The library (dist/node.js, next to it) is external.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'rolldown';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

const bundle = (name) => ({
  input: path(`./${name}.ts`),
  platform: 'node',
  transform: { target: 'node20' },
  external: /^(\.\.\/)+lib\//,
  output: {
    file: path(`../../dist/${name === 'main' ? 'cli' : name}.js`),
    format: 'esm',
    banner: '#!/usr/bin/env node',
    paths: (id) => id.replace(/^.*\/lib\/(?=(node|internal)\.js$)/, './'),
  },
});

export default defineConfig([bundle('main'), bundle('command')]);
