// Greedy continuation of a prompt with a cache of keys and values, in one worker, so that the result does not depend on the number of workers.

import { checkedWith, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { generateOptions } from '../api/language_model_kinds.js';
import type { GenerateOptions, Generation, Tokenizer } from '../api/types.js';
import type { OpenedModel } from '../model/model.js';
import { promptOf } from '../model/text_tokens.js';
import { type ForwardPlanJson, forwardOverheadBytes, forwardPlanOf } from '../plan/forward_plan.js';
import { ProgressMeter } from '../pool/progress.js';
import { type RunResources, runOne } from '../pool/run_resources.js';
import { batchesOf } from './evaluate.js';

const usualCount = 32;

const invalid = (where: string, detail: string) => failure('argument-invalid', where, detail);

/** Ids of the prompt, with the tokenizer's suffix if it is a whole text; the core checks them against the vocabulary. */
function promptIds({ tokens, text, tokenizer }: GenerateOptions, isWhole: boolean | undefined): Int32Array {
  if ((tokens === undefined) === (text === undefined))
    throw invalid('tokens', 'and text: exactly one of the two is needed');
  if (text !== undefined && typeof tokenizer?.encode !== 'function')
    throw invalid('tokenizer', 'with encode(text) is needed for text, such as the one of @huggingface/tokenizers');
  if (tokens !== undefined && !Array.isArray(tokens) && !ArrayBuffer.isView(tokens))
    throw invalid('tokens', 'is neither a list nor a typed array of token ids');
  const ids = Array.from(tokens ?? promptOf(tokenizer as Tokenizer, text ?? '', isWhole));
  const wrong = ids.find((id) => !Number.isInteger(id) || Math.abs(id) >= 2 ** 31);
  if (wrong !== undefined) throw invalid('tokens', `${shown(wrong)} is not a token id`);
  if (ids.length < 2) throw invalid('tokens', `the prompt has ${ids.length} tokens; at least 2 are needed`);
  return Int32Array.from(ids);
}

/** The text that `added` appends to `prompt`; decoders may treat the start of a text differently. */
function textOfTokens(tokenizer: Tokenizer | undefined, prompt: Iterable<number>, added: number[]): string | null {
  if (typeof tokenizer?.decode !== 'function') return null;
  const options = { skip_special_tokens: true };
  const decoded = (ids: number[]) => {
    const text = tokenizer.decode?.(ids, options);
    if (typeof text !== 'string') throw invalid('tokenizer', 'decode(ids) gave no text');
    return text;
  };
  const before = decoded([...prompt]);
  const whole = decoded([...prompt, ...added]);
  return whole.startsWith(before) ? whole.slice(before.length) : decoded(added);
}

/** The steps whose weights stay in memory: blocks, which are read whole for each token, then the head, then the embedding. */
function keptSteps(memoryBytes: number, plan: ForwardPlanJson, length: number): boolean[] {
  const { steps, tokenBytes, cacheBytes, workingBytes } = plan;
  const largest = Math.max(...steps.map(({ floatBytes }) => floatBytes));
  let left = memoryBytes - largest - workingBytes - forwardOverheadBytes - length * (tokenBytes + cacheBytes);
  const kept = steps.map(() => false);
  for (const number of [...steps.keys()].slice(1).concat(0)) {
    left -= steps[number]?.keptBytes ?? 0;
    if (left < 0) break;
    kept[number] = true;
  }
  return kept;
}

export async function continueText(
  resources: RunResources,
  model: OpenedModel,
  source: OpenedModel | undefined,
  given: GenerateOptions,
  runSignal?: AbortSignal,
): Promise<Generation> {
  const options = checkedWith(given, generateOptions, runSignal);
  const started = performance.now();
  const { instance, memory } = resources;
  const { signal, tokenizer, count: wanted = usualCount } = options;
  signal?.throwIfAborted();
  if (!Number.isInteger(wanted) || wanted < 1) throw invalid('count', `${wanted} is not a positive integer`);
  const use = { use: 'run', source } as const;
  const { maxPositions, splits } = forwardPlanOf(instance, model, 2, use);
  const tokens = promptIds(options, splits);
  // The last token needs no position.
  const count = Math.min(wanted, maxPositions + 1 - tokens.length);
  if (count < 1)
    throw invalid(
      'tokens',
      `the prompt has ${tokens.length} tokens; the model has max_position_embeddings ${maxPositions}: give a shorter one`,
    );
  const length = tokens.length + count - 1;
  const plan = forwardPlanOf(instance, model, length, use);
  const { architecture, cacheBytes, ends, steps } = plan;
  batchesOf(memory, { ...plan, tokenBytes: plan.tokenBytes + cacheBytes }, [length]);
  const kept = keptSteps(memory.shareBytes, plan, length);
  const tensors = steps.flatMap((step) => step.tensors);
  const bytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const progress = new ProgressMeter(options.onProgress, tensors.length * count, bytes * count);
  const part = { kind: 'continue' as const, architecture, steps, reads: 0, tokens, count, ends, kept };
  const added = await runOne(
    resources,
    { models: [model], work: [plan.work] },
    { label: 'the prompt', bytes, part },
    signal,
    (done) => progress.advance({ ...done, phase: 'evaluate' }),
  );
  progress.finish('evaluate');
  const isEnd = ends.includes(added.at(-1) ?? -1);
  return {
    tokens: added,
    text: textOfTokens(tokenizer, splits ? [] : tokens, added),
    promptTokens: tokens.length,
    stopped: isEnd ? 'end' : added.length < wanted ? 'length' : 'count',
    durationMs: performance.now() - started,
    threads: memory.threads,
  };
}
