// Importance matrices, mean squares of layer inputs, in llama-imatrix's format.

import { checkedWith } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import { importanceOptions } from '../api/language_model_kinds.js';
import type { ImportanceOptions } from '../api/types.js';
import type { BoundPlan } from '../engine/module.js';
import type { OpenedModel } from '../model/model.js';
import { longestOf } from '../model/tokens.js';
import { forwardBatchOf, planBlockTeam } from '../plan/forward_plan.js';
import { type CorePlanOptions, withPlan } from '../plan/plan.js';
import type { RunResources } from '../pool/run_resources.js';
import { observeActivations, observeInputs } from './activations.js';
import { given } from './calibrate.js';

/** Gives all block-quantizable GGUF weights a type that uses importance. */
const recipe = JSON.stringify({ dialect: 'gguf', recipe: 'q4_0', pure: true });

/** Errors: those of planning a GGUF output and of observing activations; argument-invalid without calibration. */
export async function observeImportance(
  resources: RunResources,
  model: OpenedModel,
  source: OpenedModel | undefined,
  options: ImportanceOptions,
  runSignal?: AbortSignal,
): Promise<Uint8Array> {
  const { calibration, format = 'gguf', dataset, signal } = checkedWith(options, importanceOptions, runSignal);
  const { instance, memory } = resources;
  const planned = <T>(settings: Partial<CorePlanOptions>, use: (bound: BoundPlan) => T) =>
    withPlan(instance, model, recipe, { format: 'gguf' }, { ...memory.tiles, calibrates: true, ...settings }, use);
  const { tokens, activations, close } = await given(resources, calibration);
  try {
    const requests = planned({}, (bound) => instance.run(() => bound.activationRequests()));
    if (requests === '') {
      const detail = 'has no weight whose rows are whole blocks of 32, which importance needs';
      throw failure('argument-invalid', 'model', detail);
    }
    const batch = tokens && (await forwardBatchOf(instance, model, tokens, { source }));
    if (batch) planBlockTeam(memory, batch);
    else if (!activations) throw failure('argument-invalid', 'calibration', 'is missing: give tokens or activations');
    const { found } = batch
      ? await observeInputs(resources, model, requests, batch, signal)
      : await observeActivations(instance, model, requests, activations ?? [], signal);
    const written = { found, dat: format === 'dat', dataset, chunkSize: batch && longestOf(batch.tokens) };
    return planned({ activations: found }, (bound) =>
      instance.bytes(() => bound.importanceMatrix(JSON.stringify(written))),
    );
  } finally {
    await close();
  }
}
