// What is compared with AMD Quark.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkAlgorithms } from './algorithms_check.mjs';
import { checkBiases } from './biases_check.mjs';
import { checkConfigs } from './config_check.mjs';
import { checkExports, exportedModels, largeModels } from './exports_check.mjs';
import { checkNumbers } from './numbers_check.mjs';

/** Parts, in the order of the table: each gives its rows. */
const parts = {
  configs: checkConfigs,
  numbers: checkNumbers,
  biases: checkBiases,
  exports: (...given) => checkExports(...given, exportedModels, 'exports'),
  smollm2: (...given) => checkExports(...given, largeModels, 'SmolLM2-135M'),
  algorithms: checkAlgorithms,
};

/** Rows of the table of `npm run test:peers`. `only`: a part of the names of the parts that are run. */
export async function checkQuark(environment, quantizer, folder, options) {
  const rows = [];
  for (const [name, check] of Object.entries(parts)) {
    if (!name.includes(options.only ?? '')) continue;
    const own = join(folder, name);
    mkdirSync(own);
    rows.push(...(await check(environment, quantizer, own, options)));
  }
  return rows;
}
