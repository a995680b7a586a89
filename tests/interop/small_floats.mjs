// Models of 8-bit floats that torch wrote (small_floats.py), read by us: written as BF16, they are torch's values to the bit.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../dist/node.js';
import { parsed } from '../node/written_model.mjs';
import { main } from '../setup/command.mjs';
import { python } from './peers.mjs';

const cases = 7;

main(async () => {
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-floats-'));
  const quantizer = await createQuantizer({ threads: 1 });
  let failed = 0;
  try {
    for (const { case: name } of python('small_floats.py', [work], cases)) {
      const model = await quantizer.open(join(work, `${name}.safetensors`));
      const target = join(work, `${name}.out`);
      const config = { global_quant_config: { weight: { dtype: 'bfloat16' } }, exclude: [] };
      const { files } = await quantizer.quantizeModel(model, config, { target, format: 'fake-quantized' });
      await model.close();
      const weight = (path) => Buffer.from(parsed(new Uint8Array(readFileSync(path))).data('layer.weight'));
      const isSame = weight(join(target, files[0].name)).equals(weight(join(work, `${name}.expected.safetensors`)));
      if (!isSame) ++failed;
      process.stdout.write(`${name.padEnd(14)} ${isSame ? 'ok' : 'FAILED: other values than torch'}\n`);
    }
  } finally {
    await quantizer[Symbol.asyncDispose]();
    rmSync(work, { recursive: true, force: true });
  }
  process.stdout.write(`8-bit floats: ${cases - failed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
});
