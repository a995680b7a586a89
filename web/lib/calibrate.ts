// Algorithms that see activations: the transformer blocks of a model go through one worker, which stores their tensors
// as the plan says; everything else of the model is quantized as in any other run.

import { linkedController } from './abort.js';
import { failure } from './errors.js';
import { type ForwardPlanJson, forwardBesidesBytes, forwardPlanOf } from './forward_plan.js';
import type { MemoryPlan } from './memory.js';
import type { OpenedModel } from './model.js';
import type { OutputFiles } from './output_files.js';
import type { PreparedRun } from './plan.js';
import type { RunContext } from './pool.js';
import type { ProgressMeter } from './progress.js';
import type { CalibrationWork } from './protocol.js';
import { ErrorSums } from './report.js';
import type { Workshop } from './run.js';
import { type TokenBatch, tokenBatch } from './tokens.js';
import type { Calibration, Diagnostic, TensorError } from './types.js';

/** What a run does with calibration. */
export interface CalibrationPlan {
  work: CalibrationWork;
  /** Bytes of the blocks as they are stored. */
  bytes: number;
  /** Numbers, in the plan, of the tensors that calibration stores. */
  items: Set<number>;
}

/** Algorithms of a config that need calibration. */
function algorithmsOf({ instance }: Workshop, config: string): string[] {
  return instance.call<string[]>((module) => module.calibratedAlgorithms(config));
}

function checkMemory(memory: MemoryPlan, plan: ForwardPlanJson, tokens: TokenBatch): void {
  const blockBytes = Math.max(...plan.steps.map((step) => step.floatBytes));
  const activations = tokens.ids.length * plan.tokenBytes;
  const needed = 2 * blockBytes + activations + plan.workingBytes + plan.calibrationBytes + forwardBesidesBytes;
  if (needed <= memory.shareBytes) return;
  const detail = `calibration needs ${needed + memory.hostBytes} bytes: ${activations} for activations of ${tokens.ids.length} tokens, the rest for one block and its statistics; give that much, or fewer tokens`;
  throw failure('memory-budget', 'memoryBudgetBytes', detail);
}

/**
 * Null when the config needs no calibration. Errors: argument-invalid (none is given where it is needed; tokens that do
 * not fit the model), those of forwardPlanOf, tensor-missing, memory-budget.
 */
export async function planCalibration(
  workshop: Workshop,
  model: OpenedModel,
  config: string,
  run: PreparedRun,
  calibration: Calibration | undefined,
): Promise<CalibrationPlan | null> {
  const algorithms = algorithmsOf(workshop, config);
  if (algorithms.length === 0) return null;
  if (!calibration) {
    const detail = `${algorithms.join(' and ')} need calibration: give { tokens } of a few texts, [sequences, length], from the model's own tokenizer, or take the algorithms out of the config`;
    throw failure('argument-invalid', 'calibration', detail);
  }
  if (run.plan.format === 'gguf') {
    const detail =
      'calibrated weights cannot be written to gguf yet; write fake-quantized with smoothquant or awq, and make the gguf file of that';
    throw failure('not-implemented', 'format', detail);
  }
  const { vocabulary, maxPositions } = forwardPlanOf(workshop.instance, model, 1);
  const tokens = await tokenBatch(calibration.tokens, calibration.tensor, vocabulary, maxPositions);
  const plan = forwardPlanOf(workshop.instance, model, tokens.length);
  checkMemory(workshop.memory, plan, tokens);
  const numbers = new Map(run.items.map(({ name }, item) => [name, item]));
  const items = new Set<number>();
  const steps = plan.steps.slice(0, -1);
  const blocks = steps.map(({ tensors }, step) =>
    (step === 0 ? [] : tensors).map(({ slot, name }) => {
      const item = numbers.get(name);
      const task = item === undefined ? undefined : run.items[item]?.task;
      if (item === undefined || !task || !('quantize' in task)) {
        const detail = 'is not stored as plain numbers; calibration needs the model as it was before quantization';
        throw failure('tensor-missing', name, detail);
      }
      items.add(item);
      return { slot, item, task: task.quantize };
    }),
  );
  const bytes = steps.slice(1).reduce((sum, step) => sum + step.tensors.reduce((all, { bytes }) => all + bytes, 0), 0);
  const work = {
    config: model.configText,
    quantization: config,
    steps: steps.map(({ name, tensors }) => ({ name, tensors })),
    blocks,
    tokens: tokens.ids,
    length: tokens.length,
  };
  return { work, bytes, items };
}

/** Runs it. Returns the error of each of its tensors, by number in the plan. */
export async function calibrateBlocks(
  { pool }: Workshop,
  { work, bytes, items }: CalibrationPlan,
  context: RunContext,
  output: OutputFiles,
  progress: ProgressMeter,
  signal: AbortSignal | undefined,
): Promise<Map<number, TensorError | null>> {
  const errors = new Map<number, TensorError | null>();
  signal?.throwIfAborted();
  const { controller: stop, unlink } = linkedController(signal);
  const part = { kind: 'calibrate' as const, item: 0, first: 1, last: work.steps.length, work };
  // A worker that died is replaced, and begins anew: blocks that came before come again, the same to the byte.
  const stored = new Set<number>();
  try {
    await pool.run(
      context,
      { label: `calibration of ${items.size} tensors`, bytes, parts: [part] },
      stop.signal,
      ({ phase = 'calibrate', name, bytes: done, tensors, stored: block }) => {
        if (block && stored.has(block.block)) return;
        if (block) {
          stored.add(block.block);
          output.accept({ parts: [], pieces: block.pieces, written: block.written });
          for (const [item, sums] of block.sums) {
            const sum = new ErrorSums();
            sum.add(sums);
            errors.set(item, sum.result());
          }
        }
        progress.advance(phase, done, tensors, name);
      },
    );
  } finally {
    unlink();
  }
  return errors;
}

/** Tokens that nothing reads. */
export function unusedCalibration(calibration: Calibration | undefined, plan: CalibrationPlan | null): Diagnostic[] {
  if (!calibration || plan) return [];
  return [
    {
      severity: 'note',
      code: 'calibration-unused',
      where: 'calibration',
      message: 'no algorithm of the config needs calibration',
      hint: 'add smoothquant to pre_quant_opt_config, or awq or gptq to algo_config',
    },
  ];
}
