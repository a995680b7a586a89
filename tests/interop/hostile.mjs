// node tests/interop/hostile.mjs: the hostile corpus through the readers that people trust: the safetensors crate,
// llama.cpp, ONNX Runtime. What one of them refuses, we must refuse; exit code 1 where we do not. What we refuse beyond
// that is listed with the reason that expected.json has.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, root } from '../setup/command.mjs';
import { python } from './peers.mjs';

const folder = 'tests/files/hostile';

/** What we read and a peer does not, with the reason. */
const readOnPurpose = {
  '16-older-dtype-names.safetensors':
    'FP4 and E8M0 are what older files call F4 and F8_E8M0; they are read, never written',
  '42-type-99.onnx': 'an element type newer than the list is carried along as it is, unless its tensor is quantized',
};

/** llama.cpp's loader on each file, by llama-gguf-split, which reads the header and writes nothing. */
function llamaErrors(paths) {
  const script =
    'for file; do llama-gguf-split --split --dry-run "$file" /tmp/none >/tmp/llama.log 2>&1; echo "$? $(tail -1 /tmp/llama.log)"; done';
  const command = [join(root, 'tests/interop/peers.sh'), 'run', 'sh', '-c', script, '--', ...paths];
  const { stdout } = spawnSync(command[0], command.slice(1), { cwd: root, encoding: 'utf8' });
  const lines = stdout.trim().split('\n');
  if (lines.length !== paths.length) throw new Error(`llama.cpp answered ${lines.length} of ${paths.length} files`);
  return lines.map((line) => (line.startsWith('0 ') ? null : line));
}

async function onnxErrors(paths) {
  const { ort } = await import('./onnx/peers.mjs');
  const errors = [];
  for (const path of paths) {
    try {
      const session = await ort.InferenceSession.create(join(root, path), { logSeverityLevel: 4 });
      await session.release();
      errors.push(null);
    } catch (error) {
      errors.push(error.message);
    }
  }
  return errors;
}

const peers = {
  'safetensors crate': {
    ending: '.safetensors',
    errorsOf: (paths) => python('hostile_safetensors.py', paths, paths.length),
  },
  'llama.cpp': { ending: '.gguf', errorsOf: llamaErrors },
  'ONNX Runtime': { ending: '.onnx', errorsOf: onnxErrors },
};

main(async () => {
  const cases = JSON.parse(readFileSync(join(root, folder, 'expected.json'), 'utf8'));
  let wrong = 0;
  for (const [peer, { ending, errorsOf }] of Object.entries(peers)) {
    const own = cases.filter(({ file }) => file.endsWith(ending) && !file.includes('/'));
    const errors = await errorsOf(own.map(({ file }) => `${folder}/${file}`));
    const theirs = own.filter((_, at) => errors[at] !== null);
    const ours = own.filter(({ ok }) => ok !== true);
    const missed = own.filter(({ ok, file }, at) => ok === true && errors[at] !== null && !(file in readOnPurpose));
    const stricter = own.filter(({ ok }, at) => ok !== true && errors[at] === null);
    wrong += missed.length;
    process.stdout.write(
      `${peer}: ${own.length} files, ${theirs.length} refused by it, ${ours.length} by us, ${missed.length} by it alone\n`,
    );
    for (const { file } of missed)
      process.stdout.write(`  WE READ ${file}: ${errors[own.findIndex((each) => each.file === file)]}\n`);
    for (const { ok, file } of own.filter(({ file: name }) => name in readOnPurpose))
      if (ok) process.stdout.write(`  we alone read ${file}: ${readOnPurpose[file]}\n`);
    for (const { file, why } of stricter) process.stdout.write(`  we alone refuse ${file}: ${why}\n`);
  }
  return wrong === 0 ? 0 : 1;
});
