// npm run accuracy [-- NAME...]: how far real models are from themselves once they are quantized, by preset and algorithm. A row that
// tests/accuracy/results.json has is not run again unless it is named or --again is given; each is kept when it is finished, with date
// and versions, and makes web/docs/accuracy.md. NAME: a row's name, or a part of names. --list prints the names.
//   .peers-python/models/smollm2 and minilm are made by `npm run test:peers -- transformers`, kjv-22m by `node tests/accuracy/train.mjs`.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll } from '../setup/build.mjs';
import { main, needs, root, say } from '../setup/command.mjs';
import { Bench, folderOf } from './bench.mjs';
import { makerOf } from './own_texts.mjs';
import { keep, recorded } from './record.mjs';
import { rows } from './rows.mjs';

function wantedOf(names, again) {
  const kept = new Set(recorded().rows.map(({ name }) => name));
  const isWhole = (part) => rows.some(({ name }) => name === part);
  const isNamed = ({ name }) => names.some((part) => (isWhole(part) ? name === part : name.includes(part)));
  const unknown = names.find((part) => !rows.some(({ name }) => name.includes(part)));
  if (unknown !== undefined) throw new Error(`no row has ${unknown} in its name; --list prints them`);
  return rows.filter((row) => (names.length > 0 ? isNamed(row) : again || !kept.has(row.name)));
}

main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    options: { list: { type: 'boolean' }, again: { type: 'boolean' } },
    allowPositionals: true,
  });
  if (values.list) {
    process.stdout.write(rows.map(({ name }) => `${name}\n`).join(''));
    return 0;
  }
  const wanted = wantedOf(positionals, values.again);
  const missing = wanted.find(({ model }) => !existsSync(join(folderOf(model), 'model.safetensors')));
  if (missing) throw needs(`.peers-python/models/${missing.model} is missing: ${makerOf(missing.model)} makes it`);
  buildAll();
  const { createQuantizer } = await import(join(root, 'dist/node.js'));
  const { tokensOfText } = await import(join(root, 'dist/model/text_tokens.js'));
  const quantizer = await createQuantizer();
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-accuracy-'));
  let failures = 0;
  try {
    const bench = new Bench(quantizer, folder, { tokensOfText });
    for (const row of wanted) {
      try {
        keep(await bench.run(row));
        say(`${row.name}: kept`);
      } catch (error) {
        failures++;
        say(`${row.name}: ${error.message}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await quantizer[Symbol.asyncDispose]();
  }
  return failures > 0 ? 1 : 0;
});
