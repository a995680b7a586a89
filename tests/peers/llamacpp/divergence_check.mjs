// `evaluate` with a reference and llama-perplexity --kl-divergence, on the same GGUF files and the same text.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { root } from '../../setup/command.mjs';
import { CaseRow } from '../case_row.mjs';
import { divergenceTable, lastRow, optionsOf, printed } from './perplexity.mjs';

const source = join(root, 'tests/files/tiny-llama');
const validation = join(root, 'tests/files/tiny-llama-reference/validation_tokens.safetensors');
const length = 256;
/** <s>; the other tokens of tiny-llama are bytes. */
const firstToken = 256;
/** Largest relative difference. */
const tolerance = 0.01;
/** Of the largest 160 of 16,000 values and fewer. Inputs that are rounded to the neighbouring code move them: llama.cpp's own two
 * kernels (--no-repack) by 5, 12 and 6 % for SmolLM2-135M as Q4_K_M. */
const tailTolerance = 0.15;

/** name: [its row in llama-perplexity's table, tolerance]. */
const statistics = {
  meanKld: ['Mean    KLD', tolerance],
  meanKldError: ['Mean    KLD', tolerance, 2],
  medianKld: ['Median  KLD', tolerance],
  kld99: ['99.0%   KLD', tailTolerance],
  kld999: ['99.9%   KLD', tailTolerance],
  maxKld: ['Maximum KLD', tailTolerance],
  sameTop: [lastRow, tolerance],
  logPerplexityRatio: ['Mean ln(PPL(Q)/PPL(base))', tolerance],
  logPerplexityRatioError: ['Mean ln(PPL(Q)/PPL(base))', tolerance, 2],
  referencePerplexity: ['Mean PPL(base)', tolerance],
};

/** Six decimals are printed. */
const decimals = 1e-6;
/** Half a step of the log-probabilities of the reference, which llama.cpp keeps as 16 bits for 16 nats: so far may the KLD of one
 * token be off. In means it averages out. */
const halfStep = 16 / 65535 / 2;
const ofSingleTokens = ['medianKld', 'kld99', 'kld999', 'maxKld'];

/** Differences that say nothing, of any relative size: of the mean ln(PPL ratio), which may be near 0, a fifth of its error. */
function slackOf(name, { logPerplexityRatioError }) {
  if (name === 'logPerplexityRatio') return logPerplexityRatioError / 5;
  return ofSingleTokens.includes(name) ? halfStep : decimals;
}

function differences(divergence, table) {
  return Object.entries(statistics).flatMap(([name, [title, share, number]]) => {
    const [ours, theirs] = [divergence[name], printed(table, title, number)];
    const isNear = Math.abs(ours - theirs) <= share * Math.abs(theirs) + slackOf(name, divergence);
    return isNear ? [] : [`${name} is ${ours}, llama-perplexity's ${theirs}`];
  });
}

/** A row: recipes of tiny-llama against its F32 file, on 127 sequences of 256 tokens. */
export async function checkDivergence(environment, quantizer, folder, only) {
  const row = new CaseRow(
    'evaluate: KLD, same top token and ln(PPL ratio) of a GGUF file are those of llama-perplexity',
  );
  const recipes = ['q8_0', 'q4_0', 'q4_k_m', 'q2_k-best', 'iq3_s-best', 'mixture-best'].filter((name) =>
    name.includes(only ?? ''),
  );
  if (recipes.length === 0) return row;
  const path = (name) => join(folder, `divergence-${name}`);
  const model = await quantizer.open(source);
  const write = async (name, calibration) => {
    const [recipe, best] = name.split('-');
    const auto = { format: 'gguf', targetBits: 3.5, calibration };
    const mixed = recipe === 'mixture' && (await quantizer.languageModel(model).autoConfig(auto));
    const config = mixed ? mixed.config : { dialect: 'gguf', recipe };
    const target = path(`${name}.gguf`);
    await quantizer.quantizeModel(model, best ? quantizer.presetConfig(config, { best: true }) : config, {
      target,
      ...(best && { calibration }),
    });
    return target;
  };
  const { data } = readTensors(validation).get('input_ids');
  const bytes = Buffer.from([...data].map(Number).filter((id) => id < firstToken));
  writeFileSync(path('text'), bytes);
  // llama-perplexity's windows: <s> in the place of the first of every 256 tokens of <s> and the text.
  const stream = [firstToken, ...bytes];
  const windows = Math.floor(stream.length / length);
  const ids = Int32Array.from(stream.slice(0, windows * length), (id, i) => (i % length === 0 ? firstToken : id));
  const tokens = { data: ids, shape: [windows, length] };
  const options = optionsOf(path('base'), length);
  const whole = await write('f32');
  environment.tool('llama-perplexity', '-m', whole, '-f', path('text'), ...options);
  const reference = await quantizer.open(whole);
  try {
    for (const recipe of recipes) {
      const file = await write(recipe, { tokens: { data: ids.subarray(0, 8 * length), shape: [8, length] } });
      const table = divergenceTable(environment, path('output'), lastRow, '-m', file, ...options);
      const quantized = await quantizer.open(file);
      const { divergence } = await quantizer.languageModel(quantized).evaluate({ tokens, against: reference });
      await quantized.close();
      row.add(recipe, differences(divergence, table));
    }
  } finally {
    await reference.close();
    await model.close();
  }
  return row;
}
