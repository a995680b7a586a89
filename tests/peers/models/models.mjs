// The models that runtimes load. tiny-llama is in the checkout; the others are made once, in .peers-python/models/NAME, from packages that
// tests/peers/transformers/requirements.txt pins.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, say } from '../../setup/command.mjs';
import { PeerEnvironment } from '../environments.mjs';

const script = join(root, 'tests/peers/models/make_model.py');

/** Tokens of bytes after <s>, as tiny-llama's tokenizer makes them. */
const bytesOf = (text) => [256, ...Buffer.from(text)];

/** name: tokens of a prompt. An encoder has no tokens to generate. */
const models = {
  'tiny-llama': { tokens: bytesOf('And God said, Let there be '), path: 'tests/files/tiny-llama' },
  'tiny-moe': { tokens: [7, 101, 33, 250, 64, 18, 199, 5, 77, 140, 12, 91] },
  smollm2: { tokens: [504, 3575, 282, 4649, 314, 7042, 28, 260] },
  minilm: { tokens: [101, 1037, 3899, 3216, 2083, 1996, 2380, 102], isEncoder: true },
};

/** What a made model depends on: the script, the pinned packages, its name. */
function digestOf(name) {
  const pins = join(root, 'tests/peers/transformers/requirements.txt');
  return createHash('sha256').update(readFileSync(script)).update(readFileSync(pins)).update(name).digest('hex');
}

async function makeModel(name, folder) {
  const stamp = `${folder}.ready`;
  const digest = digestOf(name);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  say(`making .peers-python/models/${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, '..'), { recursive: true });
  await new PeerEnvironment('transformers').run(script, name, folder);
  writeFileSync(stamp, digest);
}

/** A model by its name: {name, folder, tokens, isEncoder}; its folder is made on the first use. */
export async function runtimeModel(name) {
  const { tokens, path, isEncoder = false } = models[name];
  const folder = join(root, path ?? `.peers-python/models/${name}`);
  if (!path) await makeModel(name, folder);
  return { name, folder, tokens, isEncoder };
}
