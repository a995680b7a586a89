// Models with more files than a process may have open.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cliPath, start } from '../cli/process.mjs';
import { scratchFolder } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';

const shards = 150;
/** Node takes some 25 for itself, and as many again with two threads. */
const mostDescriptors = 120;

function modelOfShards(folder) {
  const weight_map = {};
  mkdirSync(folder);
  for (let at = 1; at <= shards; ++at) {
    const name = `model.layers.${at}.mlp.up_proj.weight`;
    const file = `model-${String(at).padStart(5, '0')}-of-00${shards}.safetensors`;
    weight_map[name] = file;
    writeFileSync(join(folder, file), safetensors({ [name]: { dtype: 'F32', shape: [8, 32], data: noise(256, at) } }));
  }
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ metadata: {}, weight_map }));
}

async function limited(...args) {
  const command = ['sh', '-c', `ulimit -n ${mostDescriptors}; exec "$@"`, 'sh', process.execPath, cliPath];
  const { code, stdout, stderr } = await start(args, { command }).done;
  assert.equal(code, 0, stderr);
  return stdout;
}

test(`${shards} shards with ${mostDescriptors} descriptors: quantize, resume, read again, compare`, async (t) => {
  const root = scratchFolder(t);
  const [source, int8, again] = ['source', 'int8', 'again'].map((name) => join(root, name));
  modelOfShards(source);
  await limited('quantize', source, '-o', int8, '-p', 'int8', '--resume');
  assert.equal(readdirSync(int8).filter((name) => name.endsWith('.safetensors')).length, shards);
  await limited('quantize', int8, '-o', again, '-p', 'fp8_per_channel');
  assert.match(await limited('compare', source, int8), new RegExp(`${shards} tensors compared, 0 exact`));
});
