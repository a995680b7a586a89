// `--card`: what a model card of the Hub says of an output, and where it is written.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson, scratch, tinyLlama } from './process.mjs';
import { moduleOf } from './web_module.mjs';

const sourceCard = `---
license: other
license_name: gemma
base_model: acme/bigger
language:
  - en
  - de
tags:
  - chat
pipeline_tag: text-generation
---
# Tiny
`;

/** A folder of the Hub's cache with a card. */
function cached(t) {
  const folder = join(scratch(t), 'models--acme--Tiny-1.5/snapshots/0123');
  mkdirSync(folder, { recursive: true });
  cpSync(tinyLlama, folder, { recursive: true });
  writeFileSync(join(folder, 'README.md'), sourceCard);
  return folder;
}

test('a folder gets a card in the place of the carried one, with what holds of the source', async (t) => {
  const [source, out] = [cached(t), join(scratch(t), 'out')];
  const { code, document } = await cliJson(['quantize', source, '-o', out, '--preset', 'int4_wo_32', '--card']);
  assert.equal(code, 0);
  assert.equal(document.card, join(out, 'README.md'));
  const card = readFileSync(document.card, 'utf8');
  const [, yaml, text] = card.split('---\n');
  assert.equal(
    yaml,
    `license: other
license_name: gemma
language:
  - en
  - de
pipeline_tag: text-generation
base_model: acme/Tiny-1.5
base_model_relation: quantized
library_name: transformers
tags:
- compressed-tensors
- quantized
- wasmquant
`,
  );
  assert.match(text, /^# Tiny-1\.5, quantized$/m);
  const { bytesBefore, bitsPerWeight } = document.totals;
  assert.ok(text.includes(`(${(bytesBefore / 1e6).toFixed(2)} MB) by wasmquant ${document.identity.library}`), text);
  assert.ok(text.includes(`| \`out\` | \`int4_wo_32\` |`));
  assert.ok(text.includes(`| ${bitsPerWeight.toFixed(2)} |`));
  assert.ok(!text.includes(out), 'a path of this machine');
  assert.match(text, /from_pretrained\("out"/);
});

test('several files have one card, with what was measured and on which text', async (t) => {
  const [out, text] = [scratch(t), join(scratch(t), 'held-out.txt')];
  writeFileSync(text, 'In the beginning was the word, and the word was written down. '.repeat(40));
  const list = ['quantize', join(tinyLlama, '..'), '-o', out, '--preset', 'q4_k_m,q8_0', '--text', text, '--card'];
  const { code, stdout, stderr } = await cli(list);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^model card: .*README\.md$/m);
  const card = readFileSync(join(out, 'README.md'), 'utf8');
  assert.match(card, /^library_name: gguf$/m);
  assert.doesNotMatch(card, /base_model/);
  assert.match(card, /^\| output .*\| KLD \|$/m);
  assert.match(card, /^\| `tiny-llama-Q4_K_M\.gguf` \| `q4_k_m` \|.*\| \d\.\d{5} ± \d\.\d{5} \|$/m);
  assert.match(card, /on `held-out\.txt`/);
});

test('a card that is there is kept, and nothing is written', async (t) => {
  const out = scratch(t);
  writeFileSync(join(out, 'README.md'), 'mine');
  const args = ['quantize', tinyLlama, '-o', join(out, 'm.gguf'), '--preset', 'q8_0', '--card'];
  const refused = await cli(args);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /README\.md exists already/);
  assert.ok(!existsSync(join(out, 'm.gguf')));
  assert.equal(readFileSync(join(out, 'README.md'), 'utf8'), 'mine');
  assert.equal((await cli([...args, '--force'])).code, 0);
  assert.match(readFileSync(join(out, 'README.md'), 'utf8'), /^---\n[\s\S]*`m\.gguf`/);
});

test('repositories are known by their place', async (t) => {
  const { repositoryOf } = await moduleOf(t, 'present/model_card.ts');
  const known = {
    'hf:org/model': 'org/model',
    'hf:org/model@v2/sub': 'org/model',
    'https://huggingface.co/org/model/resolve/main/model.safetensors': 'org/model',
    '/home/me/.cache/huggingface/hub/models--org--model-1.5/snapshots/a1': 'org/model-1.5',
    'C:\\hub\\models--org--a--b\\snapshots\\a1\\model.safetensors': 'org/a--b',
    './llama': null,
    'https://example.org/org/model': null,
  };
  for (const [source, repository] of Object.entries(known)) assert.equal(repositoryOf(source), repository, source);
});
