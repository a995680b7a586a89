// npm run test:gguf-values [-- NAME...]: GGUF of tiny checkpoints whose codes GPTQ chose. Each tensor is that of the F32 file to 2 % of its
// size, and to the bit where its dtype stays, so nothing that a conversion changes (order, factors, logarithms) is lost between calibration and file; or the run is refused, and
// nothing is written. A line a family; exit code 1 for any other.
//   --part 2/6|date/6: every sixth family   --keep: leave the files, say where
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inPart } from '../families/part.mjs';
import { tokensOf } from '../families/pseudo_text.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { families } from './cases.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const most = 0.02;
const calibration = { tokens: { rows: Array.from({ length: 8 }, (_, i) => tokensOf(64, i + 1)) } };
/** What a run that is not offered says. */
const refusals = ['not-implemented', 'format-unsupported'];

/** A tensor that keeps its dtype but not its bytes, which no algorithm here changes. */
function changedCopy(plain, plainTensors, calibrated, tensors) {
  const bytesOf = (file, { begin, end }) => file.subarray(begin, end);
  const others = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const isChanged = (tensor) => {
    const other = others.get(tensor.name);
    return other.dtype === tensor.dtype && !bytesOf(plain, tensor).equals(bytesOf(calibrated, other));
  };
  return plainTensors.find(isChanged)?.name;
}

/** The worst tensor, or why there is no file. */
async function outcomeOf(quantizer, folder) {
  const [plain, calibrated] = [`${folder}-f32.gguf`, `${folder}-q8_0.gguf`];
  const model = await quantizer.open(folder);
  try {
    await quantizer.quantizeModel(model, 'f32', { format: 'gguf', target: plain });
  } catch (error) {
    return { isRight: true, text: `no GGUF ${error.code} ${error.where}: ${error.detail}`.slice(0, 160) };
  }
  try {
    const config = { ...quantizer.presetConfig('q8_0'), algo_config: [{ name: 'gptq' }] };
    await quantizer.quantizeModel(model, config, { format: 'gguf', target: calibrated, calibration });
  } catch (error) {
    const isRight = refusals.includes(error.code) && !existsSync(calibrated);
    return {
      isRight,
      text: `${isRight ? 'refused' : 'W'} ${error.code} ${error.where}: ${error.detail}`.slice(0, 160),
    };
  }
  const [from, to] = [await quantizer.open(plain), await quantizer.open(calibrated)];
  const changed = changedCopy(readFileSync(plain), from.tensors, readFileSync(calibrated), to.tensors);
  if (changed) return { isRight: false, text: `W ${changed} is no copy` };
  const { tensors } = await quantizer.compare(from, to);
  const errors = tensors.flatMap(({ name, error }) => (error ? [{ name, share: 10 ** (-error.sqnrDb / 20) }] : []));
  const worst = errors.reduce((a, b) => (b.share > a.share || Number.isNaN(b.share) ? b : a), { name: '', share: 0 });
  const isRight = errors.length > 0 && worst.share < most;
  return { isRight, text: `${isRight ? '=' : 'W'} ${worst.name} ${(100 * worst.share).toFixed(2)} %` };
}

await main(async () => {
  const options = { part: { type: 'string' }, keep: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const names = positionals.length > 0 ? positionals : inPart(Object.keys(families), values.part);
  buildAll();
  const { createQuantizer } = await import('../../dist/node.js');
  const quantizer = await createQuantizer({ threads: 0 });
  const work = mkdtempSync(join(tmpdir(), 'gguf-values-'));
  let wrong = 0;
  try {
    const made = spawnSync(peers, ['run', 'python3', 'tests/families/make_families.py', work, ...names], { cwd: root });
    if (made.status !== 0) throw new Error(`make_families.py: ${String(made.stderr).slice(-500)}`);
    for (const name of names) {
      const { isRight, text } = await outcomeOf(quantizer, join(work, name));
      process.stdout.write(`${name.padEnd(24)} ${text}\n`);
      wrong += isRight ? 0 : 1;
    }
    process.stdout.write(`${names.length} families, ${wrong} wrong\n`);
  } finally {
    await quantizer[Symbol.asyncDispose]();
    if (values.keep) process.stdout.write(`files: ${work}\n`);
    else rmSync(work, { recursive: true });
  }
  return wrong > 0 ? 1 : 0;
});
