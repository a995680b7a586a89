// Plans and curves of models with many tensors, off the main thread: a worker opens the model from the same source, and makes plans one
// after another. The page imports this file, too, for its address: a worker that is bundled by itself would bring the library twice.
import {
  type Curve,
  type CurveOptions,
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
  | { type: 'curve'; id: number; options: LargeCurveOptions }
  | { type: 'stop'; id: number }
  | { type: 'plan'; id: number; config: string | object; options: PlanOptions; isSize: boolean };
/** A plan comes in pieces: rows, and at last the rest. Reading all at once is a long task. */
export interface PlanReply {
  id: number;
  rows?: Plan['tensors'];
  rest?: Omit<Plan, 'tensors'>;
  /** What is known of a curve so far, and at last all of it. */
  soFar?: Curve;
  curve?: Curve;
  error?: PlainError | string;
}

/** A curve's options as they are sent: a tokenizer cannot be. */
export interface LargeCurveOptions extends Pick<CurveOptions, 'target'> {
  tokens?: { text: string; sequences: number; plain: number[]; special: number[] };
}

const rowsAtOnce = 500;

/** Of the script, for `new Worker`. */
export const scriptUrl = import.meta.url;

const plainError = (error: unknown) => (error instanceof QuantizationError ? error.toPlain() : String(error));

/** Measures with workers of its own, which end with it. */
async function measured(
  source: Source | Source[],
  hub: HubOptions,
  { target, tokens }: LargeCurveOptions,
  signal: AbortSignal,
  tell: (soFar: Curve) => void,
): Promise<Curve> {
  const quantizer = await createQuantizer();
  try {
    const model = await quantizer.open(source, { hub });
    const { text, sequences, plain, special } = tokens ?? { text: '', sequences: 1, plain: [], special: [] };
    const tokenizer = {
      encode: (_: string, given?: { add_special_tokens?: boolean }) =>
        given?.add_special_tokens === false ? plain : special,
    };
    return await quantizer.curve(model, {
      ...(target && { target }),
      ...(tokens && { tokens: { text, sequences, tokenizer } }),
      signal,
      onPoint: (_, soFar) => tell(soFar),
    });
  } finally {
    await quantizer.close();
  }
}

function serve(): void {
  const quantizer = createQuantizer({ threads: 1 });
  const running = new Map<number, AbortController>();
  let from: Extract<PlanRequest, { type: 'open' }> | null = null;
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
      return [{ id, error: plainError(error) }];
    }
  };
  const reply = (message: PlanReply) => self.postMessage(message);
  const curve = async ({ id, options }: Extract<PlanRequest, { type: 'curve' }>): Promise<void> => {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      if (!from) throw new Error('The model was not opened before its curve.');
      const { source, hub } = from;
      reply({ id, curve: await measured(source, hub, options, controller.signal, (soFar) => reply({ id, soFar })) });
    } catch (error) {
      reply({ id, error: plainError(error) });
    } finally {
      running.delete(id);
    }
  };
  self.onmessage = async ({ data }: MessageEvent<PlanRequest>) => {
    if (data.type === 'curve') await curve(data);
    else if (data.type === 'stop') running.get(data.id)?.abort();
    else if (data.type === 'open') {
      from = data;
      model = quantizer.then((created) => created.open(data.source, { hub: data.hub }));
      model.catch(() => {}); // each plan says why
    } else for (const message of await answer(data)) reply(message);
  };
}

if (typeof document === 'undefined') serve();
