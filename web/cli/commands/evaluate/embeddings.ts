/** `wasmquant evaluate <encoder> --against <model> --text F`: how far embeddings of the lines of a text are from a reference's. */
import type { Agreement, Embeddings, EvaluateOptions, LanguageModel, Model, Progress } from '../../../lib/node.js';
import { durationText, plural } from '../../../present/units.js';
import { ruleText, verdictOf } from '../../../present/verdict.js';
import { CommandError, usageError } from '../../failure.js';
import { printable } from '../../terminal.js';
import { openText, type TokenOptions } from '../../token_source.js';

/** Lines of the text by default at most. */
const usualTexts = 256;

export interface EmbeddingCommand extends TokenOptions {
  activations?: EvaluateOptions['activations'];
}

/** The result for JSON: without the vectors, with the text that is worst. */
export interface AgreementDocument extends Agreement, Omit<Embeddings, 'vectors' | 'agreement'> {
  texts: number;
  worst: string;
  data: string;
  against: string;
}

/** Errors: usage for options of other models, argument-invalid for a text of fewer than three lines. */
export async function agreementOf(
  encoder: LanguageModel,
  models: readonly Model[],
  reference: { model: Model | null; path: string | undefined },
  options: EmbeddingCommand,
  watch: { signal: AbortSignal; onProgress: (progress: Progress) => void },
): Promise<AgreementDocument> {
  const { text: path, activations, length, sequences = usualTexts } = options;
  const what =
    'this model is an encoder: its embeddings of the lines of a text are compared with those of another model';
  if (path === undefined) throw usageError(what, 'give --text FILE, with one text a line');
  if (!reference.model || reference.path === undefined)
    throw usageError(what, 'give --against MODEL, the model that it was made from');
  if (activations === 'gguf') throw usageError('--activations gguf is not for encoders', 'give float32 or int8');
  const { text, tokenizer } = await openText(models, path);
  const lines = [text]
    .flat()
    .flatMap((one) => one.split('\n'))
    .map((line) => line.trim());
  const texts = [...new Set(lines.filter((line) => line !== ''))].slice(0, sequences);
  const found = await encoder.embeddings({
    texts,
    tokenizer,
    against: reference.model,
    ...(activations !== undefined && { activations }),
    ...(length !== undefined && { length }),
    ...watch,
  });
  const { vectors: _, agreement, ...others } = found;
  if (!agreement) throw new CommandError('internal', 'no reference was compared', { where: 'embeddings' });
  const worst = texts[agreement.leastText] ?? '';
  return { ...agreement, ...others, texts: texts.length, worst, data: path, against: reference.path };
}

export function agreementLines(found: AgreementDocument): string[] {
  const { meanCosine, leastCosine, worst, rankCorrelation, sameNearest, pooling, dense, tokens, texts, durationMs } =
    found;
  const shown = worst.length > 60 ? `${worst.slice(0, 59)}…` : worst;
  const how = [pooling === 'mean' ? 'mean of the tokens' : 'first token', ...dense].join(', then ');
  return [
    `mean cosine       ${meanCosine.toFixed(5)}  ${verdictOf('embedding-error', 1 - meanCosine)}`,
    `smallest cosine   ${leastCosine.toFixed(5)}  of "${printable(shown)}"`,
    `rank correlation  ${rankCorrelation.toFixed(5)}  of the similarities of all pairs`,
    `same nearest      ${(100 * sameNearest).toFixed(1)} %`,
    '',
    `${plural(texts, 'text')}, ${tokens} tokens, ${how}, of ${printable(found.data)}, against ${printable(found.against)}, ${durationText(durationMs)}`,
    ruleText('embedding-error'),
  ];
}
