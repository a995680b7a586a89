// Plans of models with many tensors, off the main thread: a worker opens the model from the same source, and makes plans one after
// another. The page imports this file, too, for its address: a worker that is bundled by itself would bring the library twice.
import {
  createQuantizer,
  type HubOptions,
  type Model,
  type PlainError,
  type Plan,
  type PlanOptions,
  QuantizationError,
  type Source,
} from 'wasmquant';

export type PlanRequest =
  | { type: 'open'; source: Source | Source[]; hub: HubOptions }
  /** `isSize`: without the rows. */
  | { type: 'plan'; id: number; config: string | object; options: PlanOptions; isSize: boolean };
/** A plan comes in pieces: rows, and at last the rest. Reading all at once is a long task. */
export interface PlanReply {
  id: number;
  rows?: Plan['tensors'];
  rest?: Omit<Plan, 'tensors'>;
  error?: PlainError | string;
}

const rowsAtOnce = 500;

/** Of the script, for `new Worker`. */
export const scriptUrl = import.meta.url;

function serve(): void {
  const quantizer = createQuantizer({ threads: 1 });
  let model: Promise<Model> | null = null;
  // What is chosen was often planned for its size just before.
  let last: { key: string; plan: Plan } | null = null;
  const planned = async (config: string | object, options: PlanOptions): Promise<Plan> => {
    if (!model) throw new Error('The model was not opened before its plan.');
    const key = JSON.stringify([config, options]);
    if (last?.key !== key) last = { key, plan: (await quantizer).plan(await model, config, options) };
    return last.plan;
  };
  const answer = async (request: Extract<PlanRequest, { type: 'plan' }>): Promise<PlanReply[]> => {
    const { id, config, options, isSize } = request;
    try {
      const { tensors, ...rest } = await planned(config, options);
      if (isSize) return [{ id, rest }];
      const replies: PlanReply[] = [];
      for (let first = 0; first < tensors.length; first += rowsAtOnce)
        replies.push({ id, rows: tensors.slice(first, first + rowsAtOnce) });
      return [...replies, { id, rest }];
    } catch (error) {
      return [{ id, error: error instanceof QuantizationError ? error.toPlain() : String(error) }];
    }
  };
  self.onmessage = async ({ data }: MessageEvent<PlanRequest>) => {
    if (data.type === 'open') {
      model = quantizer.then((created) => created.open(data.source, { hub: data.hub }));
      model.catch(() => {}); // each plan says why
    } else for (const reply of await answer(data)) self.postMessage(reply);
  };
}

if (typeof document === 'undefined') serve();
