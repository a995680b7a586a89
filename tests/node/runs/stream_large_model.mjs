// Quantizes the file of argv[2] to int8 into a stream that keeps only its last bytes; prints what memory.test.mjs checks.
import { createQuantizer } from '../../../dist/node.js';

const quantizer = await createQuantizer({ threads: 2 });
const model = await quantizer.open(process.argv[2]);
const plan = await quantizer.plan(model, 'int8');
const { outputs } = plan.tensors.find(({ name }) => name === 'second.weight');
const total = plan.files[0].bytes;
const rows = outputs[0].shape[0];
/** What comes after the last row of codes: the scales, at least. */
const kept = 4 * rows + 1024;
let tail = Buffer.alloc(0);
let bytes = 0;
const target = new WritableStream({
  write(chunk) {
    bytes += chunk.length;
    if (bytes > total - kept) tail = Buffer.concat([tail, chunk]).subarray(-kept);
  },
});
const report = await quantizer.quantizeModel(model, 'int8', { target });
// Codes of second.weight are followed by its scales, one float32 a row.
process.stdout.write(
  JSON.stringify({
    maxRssBytes: process.resourceUsage().maxRSS * 1024,
    bytes,
    outputs,
    lastScale: tail.readFloatLE(tail.length - 4),
    firstScale: tail.readFloatLE(tail.length - 4 * rows),
    lastCode: tail.readUInt8(tail.length - 4 * rows - 1),
    maxAbs: report.tensors.find(({ name }) => name === 'second.weight').error.maxAbs,
  }),
);
await quantizer[Symbol.asyncDispose]();
