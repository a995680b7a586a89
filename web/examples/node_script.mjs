// node node_script.mjs MODEL OUTPUT [PRESET]
import process from 'node:process';
import { createQuantizer, isQuantizationError } from 'wasmquant';

const [input, target, preset = 'int4_wo_128'] = process.argv.slice(2);
const quantizer = await createQuantizer();
try {
  const model = await quantizer.open(input);
  const report = await quantizer.quantizeModel(model, preset, {
    target,
    onProgress: ({ bytesDone, bytesTotal }) => {
      if (process.stderr.isTTY) process.stderr.write(`\r${Math.round((100 * bytesDone) / bytesTotal)} %`);
    },
  });
  const { bytesBefore, bytesAfter, bitsPerWeight } = report.totals;
  console.log(`${bytesBefore} to ${bytesAfter} bytes, ${bitsPerWeight.toFixed(2)} bits per weight`);
  const worst = report.tensors.filter(({ error }) => error).sort((a, b) => a.error.sqnrDb - b.error.sqnrDb);
  for (const { name, error } of worst.slice(0, 5)) console.log(`${error.sqnrDb.toFixed(1)} dB  ${name}`);
  await model.close();
} catch (error) {
  if (!isQuantizationError(error)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await quantizer.close();
}
