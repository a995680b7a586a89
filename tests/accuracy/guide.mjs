// Markdown of tests/accuracy/results.json.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { item, table } from '../peers/markdown_table.mjs';
import { root } from '../setup/command.mjs';
import { rows } from './rows.mjs';

export const guidePath = join(root, 'web/docs/accuracy.md');

const heading = `---

title: Accuracy of real models
group: Measurements

---

# Accuracy of real models

\`npm run accuracy\` writes this page. It quantizes a trained model, measures how far the result is from the model, and keeps each row with its date and the
versions that made it. \`npm run accuracy -- int4_wo_64\` runs the rows with that in their names, \`npm run accuracy\` those that are not here yet.

Texts are three parts of Python's language reference. Algorithms calibrate on the first (16 sequences of 512 tokens), nothing in this table was chosen by the
second, and the figures are those of the third. KLD is that of the weights: inputs of layers are float32. Seconds depend on the machine, two cores without a
GPU, and on what else it ran; those of all cores together (CPU) less so. \`best\` is [\`--best\`](calibrate.md). gptqmodel and llm-compressor run
GPTQ with their defaults, AutoRound 50 iterations on 8 of the sequences. All quantize the linear layers of the blocks.

Of GGUF files with \`best\`, llama.cpp says more, in tables of their own. "As run" is our KLD with inputs of layers rounded as llama.cpp rounds them;
llama-perplexity's is that of the same windows, so the two should agree. Speed is that of llama-bench by processor time, divided by that of llama-quantize's
file of the same recipe.
\`mixture_q3_k_m\` is a [mixture by measured loss](choose-a-scheme.md#spend-a-budget) of the size that \`q3_k_m\` has.`;

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
const plusMinus = (value, error) => `${value.toPrecision(3)} ± ${error.toPrecision(1)}`;

const columns = {
  smollm2: [
    'SmolLM2-135M',
    `[KLD](measure.md#compared-with-the-original-model) and the rest on 8 sequences of 512 tokens, the second half of each scored. The model was read from a GGUF
in Q4_1, 16 levels with a minimum in each 32 columns. So schemes with zero points and GGUF types find some of their levels again, or lie right between them
(Q5_1, which \`q5_k_m\` has in rows of 576): compare rows of one scheme.`,
    ['KLD', (row) => plusMinus(row.meanKld, row.meanKldError)],
    ['median', (row) => row.medianKld.toPrecision(3)],
    ['99 %', (row) => row.kld99.toPrecision(3)],
    ['same token', (row) => `${(100 * row.sameTop).toFixed(1)} %`],
    ['ln(PPL ratio)', (row) => plusMinus(row.logPerplexityRatio, row.logPerplexityRatioError)],
  ],
  'kjv-22m': [
    'A larger model that was never rounded',
    `A Llama of 22 million parameters that \`node tests/accuracy/train.mjs\` makes: 7 blocks of 512 channels, a vocabulary of bytes, trained on the King James
Bible without every 20th chapter; weights are float32. KLD on 64 sequences of 256 tokens of those chapters, the second half of each scored; calibration, and
the importance matrix of both tools, are of 32 sequences of the others.`,
    ['KLD', (row) => plusMinus(row.meanKld, row.meanKldError)],
    ['99 %', (row) => row.kld99.toPrecision(3)],
    ['same token', (row) => `${(100 * row.sameTop).toFixed(1)} %`],
  ],
  'tiny-llama': [
    'A model that was never rounded',
    `The model of the tests: 2.6 million parameters in float32, trained on the King James Bible. KLD on 64 sequences of 256 tokens that it was not
trained on, the second half of each scored; calibration, and the importance matrix of both tools, are of 32 sequences.`,
    ['KLD', (row) => plusMinus(row.meanKld, row.meanKldError)],
    ['99 %', (row) => row.kld99.toPrecision(3)],
    ['same token', (row) => `${(100 * row.sameTop).toFixed(1)} %`],
  ],
  minilm: [
    'all-MiniLM-L6-v2',
    'Embeddings of 64 sentences by transformers: cosine of each with that of the model, and the rank correlation of the similarities of all pairs.',
    ['mean cosine', (row) => row.meanCosine.toFixed(5)],
    ['least cosine', (row) => row.leastCosine.toFixed(5)],
    ['rank correlation', (row) => row.rankCorrelation.toFixed(5)],
  ],
};

const schemeOf = (row) => [row.preset, ...row.algorithms].join(' + ');

/** The rows of a model that were measured, in the order of the table. */
function measured(model, results) {
  return rows
    .filter((row) => row.model === model)
    .flatMap((row) => {
      const result = results.rows.find(({ name }) => name === row.name);
      return result ? [{ ...row, ...result }] : [];
    });
}

/** What llama.cpp says of calibrated GGUF files. */
function inLlamaCpp(rows) {
  const found = rows.filter(({ kldOfLlamaPerplexity }) => kldOfLlamaPerplexity !== undefined);
  if (found.length === 0) return [];
  const lines = found.map((row) => [
    schemeOf(row),
    row.kldOfFile.toPrecision(4),
    row.kldOfLlamaPerplexity.toPrecision(4),
    row.speed?.toFixed(2) ?? '',
  ]);
  return ['', ...table(['scheme', 'KLD as run', 'llama-perplexity', 'speed'], lines)];
}

function section(model, results) {
  const [title, text, ...shown] = columns[model];
  const found = measured(model, results);
  if (found.length === 0) return [];
  const headers = ['by', 'scheme', ...shown.map(([name]) => name), 'size', 'seconds', 'CPU'];
  const lines = found.map((row) => [
    row.tool,
    schemeOf(row),
    ...shown.map(([, of]) => of(row)),
    megabytes(row.bytes),
    row.seconds,
    row.processorSeconds ?? '',
  ]);
  const made = [...new Set(found.map(({ date, versions }) => `${date}, ${versions}`))].map((stamp) => {
    const those = found.filter(({ date, versions }) => stamp === `${date}, ${versions}`);
    return `${stamp}: ${those.map(schemeOf).join(', ')}`;
  });
  return [
    '',
    `## ${title}`,
    '',
    text,
    '',
    ...table(headers, lines),
    ...inLlamaCpp(found),
    '',
    ...made.flatMap((one) => item(one)),
  ];
}

/** The whole page. */
export function guideOf(results) {
  return `${[heading, ...Object.keys(columns).flatMap((model) => section(model, results))].join('\n')}\n`;
}

/** What the pages of web/docs/run show of a row, by model. */
const loss = {
  smollm2: [
    ['same next token', (row) => `${(100 * row.sameTop).toFixed(1)} %`],
    ['KLD', (row) => row.meanKld.toPrecision(2)],
  ],
  minilm: [
    ['mean cosine', (row) => row.meanCosine.toFixed(4)],
    ['rank correlation', (row) => row.rankCorrelation.toFixed(4)],
  ],
};

/** The schemes that a page names, of those that were measured: size and loss. */
function lossTable(model, schemes, results) {
  const byScheme = new Map(
    measured(model, results)
      .filter(({ tool }) => tool === 'wasmquant')
      .map((row) => [[row.preset, ...row.algorithms].join('+'), row]),
  );
  const found = schemes.flatMap((scheme) => byScheme.get(scheme) ?? []);
  if (found.length === 0) return ['Not measured yet: [Accuracy of real models](../accuracy.md).'];
  const headers = ['preset', 'size', ...loss[model].map(([name]) => name)];
  const lines = found.map((row) => [
    schemeOf(row).replace(/[\w]+/, '`$&`'),
    megabytes(row.bytes),
    ...loss[model].map(([, of]) => of(row)),
  ]);
  return [
    ...table(headers, lines),
    '',
    'How this was measured: [Accuracy of real models](../accuracy.md). `npm run accuracy` measures it again.',
  ];
}

/** A page of web/docs/run with its tables: what is between `<!-- accuracy: MODEL SCHEME... -->` and `<!-- end -->`. */
export function withLossTables(markdown, results) {
  return markdown.replace(
    /(<!-- accuracy: (\w+) (.*) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, begin, model, schemes, end) =>
      `${begin}\n${lossTable(model, schemes.split(' '), results).join('\n')}\n\n${end}`,
  );
}

/** Paths of the pages that have such tables. */
export function pagesWithLossTables() {
  const folder = join(root, 'web/docs/run');
  return readdirSync(folder).map((name) => join(folder, name));
}
