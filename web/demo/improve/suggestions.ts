// Improvements for the layers with the largest errors: every candidate is planned for its size and tried for its error.
import { signal } from '@preact/signals';
import type { Model, OutputFormat, PlannedTensor, TensorReport } from 'wasmquant';
import { formats } from 'wasmquant/internal';
import { quantizer } from '../app/engine';
import { largeModel, sizedPlan } from '../configure/planner';
import type { FinishedRun } from '../run/runs';
import { type Candidate, candidatesFor } from './candidates';

export interface Option {
  candidate: Candidate;
  /** Change of the output's size, in bytes. */
  bytes: number;
  /** SQNR of the tensor then; null if it would not be quantized. */
  sqnrDb: number | null;
}

export interface Suggestion {
  tensor: TensorReport;
  options: Option[];
}

/** Number of layers examined. */
const mostLayers = 5;

/** By run number; a missing run has not been examined. */
export const suggestions = signal<{ run: number; list: Suggestion[]; isComplete: boolean } | null>(null);

function worst({ report }: FinishedRun): TensorReport[] {
  return report.tensors
    .filter(({ error }) => error && Number.isFinite(error.sqnrDb))
    .sort((left, right) => (left.error?.sqnrDb ?? 0) - (right.error?.sqnrDb ?? 0))
    .slice(0, mostLayers);
}

interface Context {
  model: Model;
  format: OutputFormat;
  config: Record<string, unknown>;
  signal: AbortSignal;
}

async function optionOf(
  { model, format, config, signal }: Context,
  { name }: PlannedTensor,
  before: number,
  candidate: Candidate,
): Promise<Option | null> {
  const edited = candidate.edit(config);
  try {
    const { totals } = await sizedPlan(model, edited, { format });
    const large = largeModel(model);
    const [tried] = large
      ? await large.ask('preview', { config: edited, tensors: [name], options: { format } }, { signal })
      : await quantizer.value!.preview(model, edited, [name], { format, signal });
    return { candidate, bytes: totals.bytesAfter - before, sqnrDb: tried?.error?.sqnrDb ?? null };
  } catch (error) {
    if (signal.aborted) throw error;
    return null; // the format does not support it, or its groups do not divide this layer
  }
}

/** Fills `suggestions` layer by layer. */
export async function findSuggestions(run: FinishedRun, signal: AbortSignal): Promise<void> {
  const { model, plan, config, number } = run;
  const { format } = plan;
  const list: Suggestion[] = [];
  suggestions.value = { run: number, list, isComplete: false };
  const context = { model, format, config, signal };
  const before = (await sizedPlan(model, config, { format })).totals.bytesAfter;
  for (const tensor of worst(run)) {
    const row = plan.tensors.find(({ name }) => name === tensor.name);
    if (!row) continue;
    const options: Option[] = [];
    for (const candidate of candidatesFor(row, formats.outputs[format].takesRecipes)) {
      const option = await optionOf(context, row, before, candidate);
      const gain = (option?.sqnrDb ?? Number.POSITIVE_INFINITY) - (tensor.error?.sqnrDb ?? 0);
      if (option && gain > 0.1) options.push(option);
      if (signal.aborted) return;
    }
    list.push({ tensor, options });
    suggestions.value = { run: number, list: [...list], isComplete: false };
  }
  suggestions.value = { run: number, list, isComplete: true };
}
