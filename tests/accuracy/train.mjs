// node tests/accuracy/train.mjs: makes .peers-python/models/kjv-22m, a language model of 22 million parameters whose weights were never
// rounded, from the text of Debian's packages bible-kjv and bible-kjv-text, with the Python of `npm run test:peers -- transformers`. Takes
// about half an hour of one core that multiplies bfloat16; run again after an interruption, it goes on.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PeerEnvironment } from '../peers/environments.mjs';
import { findProgram, main, needs, root, run, say } from '../setup/command.mjs';
import { own } from './own_texts.mjs';

const packages = ['bible-kjv', 'bible-kjv-text'];
const verses = 'Gen1:1-Rev22:21';

/** Writes the text: a verse a line, after its reference. */
function writeText(path, folder) {
  if (!findProgram('apt-get') || !findProgram('dpkg-deb'))
    throw needs(`the text is in Debian's packages ${packages.join(' and ')}: run this on Debian`);
  run('apt-get', ['-qq', '-o', 'APT::Sandbox::User=root', 'download', ...packages], { cwd: folder });
  for (const name of readdirSync(folder)) run('dpkg-deb', ['-x', name, 'unpacked'], { cwd: folder });
  const usr = join(folder, 'unpacked/usr');
  const given = ['-p', join(usr, 'lib'), '-f', verses];
  const { status, stdout, stderr } = spawnSync(join(usr, 'bin/bible'), given, { maxBuffer: 1 << 24 });
  if (status !== 0) throw needs(`bible ended with exit code ${status}: ${stderr}`);
  writeFileSync(path, stdout);
}

main(async (args) => {
  const target = join(root, own['kjv-22m'].folder);
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-text-'));
  try {
    const text = join(folder, 'kjv.txt');
    mkdirSync(join(folder, 'packages'));
    writeText(text, join(folder, 'packages'));
    mkdirSync(dirname(target), { recursive: true });
    const script = join(root, 'tests/accuracy/tools/train_model.py');
    const tokenizer = join(root, own['tiny-llama'].folder);
    for await (const line of new PeerEnvironment('transformers').lines(script, text, tokenizer, target, ...args))
      say(`step ${line.step}: ${line.heldOut.toFixed(3)} bits per byte`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
