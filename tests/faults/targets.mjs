// Outputs that fail: streams that refuse at some byte, a full disk (a small tmpfs, as root), folders without permission,
// aborts at every phase, and workers that die. Nothing stays behind, the error says what happened, and the next run with
// the same quantizer gives the whole output.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { contentsOf, random, writeModel } from './model.mjs';

/** Streams that fail when `limit` bytes have been written to them together; `aborted` counts those told to give up. */
function failingTarget(limit) {
  const state = { written: 0, closed: 0, aborted: 0 };
  const write = async () =>
    new WritableStream({
      write(part) {
        state.written += part.byteLength;
        if (state.written > limit) throw new Error('no space left on device');
      },
      close: () => void ++state.closed,
      abort: () => void ++state.aborted,
    });
  return { state, write };
}

const fullDisk = `
set -e
mkdir -p "$1/disk"
mount -t tmpfs -o size=3m tmpfs "$1/disk"
mkdir "$1/disk/out" && echo kept > "$1/disk/out/earlier.txt"
set +e
"$2" "$3" quantize "$4" -o "$1/disk/out" -p int8 --force --quiet 2> "$1/disk.log"
code=$?
ls "$1/disk/out" | grep -v earlier.txt > "$1/disk.left"
echo $code > "$1/disk.code"
grep -qx kept "$1/disk/out/earlier.txt" || echo changed >> "$1/disk.left"
`;

export async function targets(folder, count, fault, createQuantizer) {
  const model = writeModel(join(folder, 'targets'), 3);
  const next = random(count + 2);
  let number = 0;
  const out = () => join(folder, `target-${number++}`);
  let leftOut = '';

  for (const threads of [0, 2]) {
    const quantizer = await createQuantizer({ threads });
    const opened = await quantizer.open(model);
    try {
      const first = out();
      await quantizer.quantizeModel(opened, 'int8', { target: first });
      const whole = contentsOf(first);
      const again = async (after) => {
        const target = out();
        const error = await quantizer.quantizeModel(opened, 'int8', { target }).then(
          () => null,
          (thrown) => thrown,
        );
        fault(contentsOf(target) === whole, `after ${after}, ${threads} workers: ${error?.message ?? 'other bytes'}`);
      };

      for (let at = 0; at < count; ++at) {
        const target = failingTarget(Math.floor(next() * 6e6));
        const error = await quantizer.quantizeModel(opened, 'int8', { target }).catch((thrown) => thrown);
        fault(
          error?.code === 'write-failed' && target.state.closed <= 1,
          `a stream that fails: ${error?.code} ${error?.message}`,
        );
      }
      await again('failing streams');

      const phases = new Set();
      for (let at = 0; at < count; ++at) {
        const controller = new AbortController();
        const target = out();
        let calls = 0;
        const limit = Math.floor((at / count) * 40);
        if (limit === 0) controller.abort(new Error('changed my mind'));
        const error = await quantizer
          .quantizeModel(opened, 'int8', {
            target,
            signal: controller.signal,
            onProgress: ({ phase }) => {
              if (++calls < limit) return;
              phases.add(phase);
              controller.abort(new Error('changed my mind'));
            },
          })
          .then(
            () => null,
            (thrown) => thrown,
          );
        const isWhole = error === null && contentsOf(target) === whole;
        const isGone = error?.message === 'changed my mind' && contentsOf(target) === null;
        fault(isWhole || isGone, `aborted at call ${limit}: ${error?.message ?? 'not whole'}`);
        const left = readdirSync(folder).filter((name) => name.endsWith('.partial'));
        fault(left.length === 0, `an abort left ${left.join(', ')}`);
      }
      await again('aborts');
    } finally {
      await opened.close();
      await quantizer[Symbol.asyncDispose]();
    }
  }

  if (process.getuid?.() === 0) {
    const args = [
      '--mount',
      '--propagation',
      'private',
      'bash',
      '-c',
      fullDisk,
      '--',
      folder,
      process.execPath,
      join(root, 'dist/cli.js'),
      model,
    ];
    const { status, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
    const read = (name) => spawnSync('cat', [join(folder, name)], { encoding: 'utf8' }).stdout.trim();
    fault(status === 0 || read('disk.code') !== '', `a full disk could not be made: ${stderr}`);
    fault(read('disk.code') === '1', `a full disk: exit code ${read('disk.code')}, ${read('disk.log')}`);
    fault(read('disk.left') === '', `a full disk left ${read('disk.left')}`);
    fault(/space/i.test(read('disk.log')), `a full disk: ${read('disk.log')}`);
  } else {
    leftOut += ', no full disk (needs root)';
    const locked = join(folder, 'locked');
    mkdirSync(locked);
    writeFileSync(join(locked, 'earlier.txt'), 'kept\n');
    chmodSync(locked, 0o500);
    const args = [join(root, 'dist/cli.js'), 'quantize', model, '-o', locked, '-p', 'int8', '--force', '--quiet'];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    fault(status === 1 && readdirSync(locked).length === 1, `a folder without permission: ${status} ${stderr}`);
    chmodSync(locked, 0o700);
  }
  return `${count} failing streams and ${count} aborts with 0 and with 2 workers, a full disk${leftOut}`;
}
