// The worker: it opens the model from the same source as the page, and does what is asked for. The page imports this file, too, for its
// address: a worker that is bundled by itself would bring the library twice.
import {
  type Calibration,
  createQuantizer,
  type Model,
  QuantizationError,
  type Quantizer,
  type RunReport,
  type Source,
} from 'wasmquant';
import { planNow } from 'wasmquant/internal';
import { activationsOf } from '../feeds/activations';
import { workerRuntime } from '../feeds/worker-runtime';
import type { LargeReply, LargeRequest, PlainTokens, WorkKind, Works } from './messages';

const rowsAtOnce = 250;

/** Of the script, for `new Worker`. */
export const scriptUrl = import.meta.url;

interface Means {
  quantizer: Quantizer;
  model: Model;
  signal: AbortSignal;
}
type Tell<K extends WorkKind> = (told: Works[K]['told']) => void;
type Work = {
  [K in WorkKind]: (means: Means, asked: Works[K]['asked'], tell: Tell<K>) => Promise<Works[K]['result']>;
};

function textOf({ text, sequences, plain, special }: PlainTokens) {
  const tokenizer = {
    encode: (_: string, given?: { add_special_tokens?: boolean }) =>
      given?.add_special_tokens === false ? plain : special,
  };
  return { text, sequences, tokenizer };
}

function works(): Work {
  // What is chosen was often planned for its size just before.
  let last: { key: string; plan: Promise<Works['plan']['result']> } | null = null;
  // Of this very model: a run that reuses its output need not measure it.
  let done: { number: number; report: RunReport } | null = null;
  const plan = ({ quantizer, model }: Means, { config, options }: Works['plan']['asked']) => {
    const key = JSON.stringify([config, options]);
    if (last?.key !== key) last = { key, plan: (async () => planNow(quantizer, model, config, options))() };
    return last.plan;
  };
  return {
    plan,
    async size(means, asked) {
      const { tensors: _, ...rest } = await plan(means, asked);
      return rest;
    },
    curve({ quantizer, model, signal }, { tokens, outputs, ...options }, tell) {
      const given = {
        ...(tokens && { tokens: textOf(tokens) }),
        ...(outputs && { runtime: workerRuntime(signal), measureSpeed: true }),
      };
      return quantizer.curve(model, { ...options, ...given, signal, onPoint: (_, soFar) => tell(soFar) });
    },
    preview({ quantizer, model, signal }, { config, tensors, options }) {
      return quantizer.preview(model, config, tensors, { ...options, signal });
    },
    async run({ quantizer, model, signal }, { number, config, tokens, feeds, reuse, ...options }, tell) {
      const report = done && done.number === reuse?.number ? done.report : null;
      const opened: Model[] = [];
      const open = async (source: Source | Source[]) => {
        const file = await quantizer.open(source);
        opened.push(file);
        return file;
      };
      try {
        const output = reuse && report ? await open(reuse.output) : null;
        let calibration: Calibration | null = tokens ? { tokens: textOf(tokens) } : null;
        if (feeds) {
          const files: Model[] = [];
          for (const group of feeds) files.push(await open(group));
          calibration = await activationsOf({ model, files }, (sample) => tell({ sample }), signal);
        }
        const made = await quantizer.quantizeModel(model, config, {
          ...options,
          signal,
          onProgress: (progress) => tell({ progress }),
          ...(calibration && { calibration }),
          ...(reuse && report && output && { reuse: { config: reuse.config, output, report } }),
        });
        done = { number, report: made };
        return made;
      } finally {
        await Promise.all(opened.map((file) => file.close()));
      }
    },
  };
}

/** Errors of the library lose their class on the way, those of the browser do not. */
function sendable(error: unknown): LargeReply['error'] {
  if (error instanceof QuantizationError) return error.toPlain();
  return error instanceof Error ? error : new Error(String(error));
}

function* repliesWith(id: number, result: object): Generator<LargeReply> {
  if (!('tensors' in result) || !Array.isArray(result.tensors)) {
    yield { id, result };
    return;
  }
  const { tensors, ...rest } = result;
  for (let first = 0; first < tensors.length; first += rowsAtOnce)
    yield { id, rows: tensors.slice(first, first + rowsAtOnce) };
  yield { id, result: rest };
}

function serve(): void {
  const work = works();
  const quantizer = createQuantizer();
  const running = new Map<number, AbortController>();
  let model: Promise<Model> | null = null;
  const reply = (message: LargeReply) => self.postMessage(message);
  const answer = async <K extends WorkKind>(id: number, kind: K, asked: Works[K]['asked']): Promise<void> => {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      if (!model) throw new Error('The model was not opened before work on it.');
      const means = { quantizer: await quantizer, model: await model, signal: controller.signal };
      const result = await work[kind](means, asked, (told) => reply({ id, told }));
      for (const message of repliesWith(id, result)) reply(message);
    } catch (error) {
      reply({ id, error: sendable(error) });
    } finally {
      running.delete(id);
    }
  };
  self.onmessage = ({ data }: MessageEvent<LargeRequest>) => {
    if (data.type === 'stop') running.get(data.id)?.abort();
    else if (data.type === 'work') void answer(data.id, data.kind, data.asked);
    else {
      model = quantizer.then((created) => created.open(data.source, { hub: data.hub }));
      model.catch(() => {}); // each piece of work says why
    }
  };
}

if (typeof document === 'undefined') serve();
