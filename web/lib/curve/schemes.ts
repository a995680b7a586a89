// The schemes of a curve: presets that a runtime reads, of weights only, so that a forward pass in float32 measures what they cost.

import { failure, QuantizationError } from '../api/errors.js';
import { formats } from '../api/formats.js';
import type { OutputFormat, Plan, RuntimeName } from '../api/types.js';
import type { OpenedModel } from '../model/model.js';

/** A preset in a format. */
export interface Scheme {
  scheme: string;
  format: OutputFormat;
  plan: Plan;
}

interface Choice {
  format: OutputFormat;
  schemes: readonly string[];
}

const gguf: Choice = {
  format: 'gguf',
  schemes: ['q8_0', 'q6_k', 'q5_k_m', 'q4_k_m', 'iq4_xs', 'q3_k_m', 'q2_k'],
};
const onnx: Choice = {
  format: 'onnx',
  schemes: ['int8', 'int8_per_tensor', 'uint4_wo_32', 'int4_wo_32', 'int4_wo_64', 'int4_wo_128', 'int4_wo_per_channel'],
};
const packed = ['int8', 'fp8_per_channel', 'int4_wo_32', 'int4_wo_64', 'int4_wo_128', 'nvfp4', 'mxfp4'];

/** Each seen to load there: formats.md has the list. */
const choices: Record<Exclude<RuntimeName, 'web' | 'ollama'>, Choice> = {
  'llama.cpp': gguf,
  vllm: { format: 'compressed-tensors', schemes: [...packed, 'uint4_wo_128'] },
  transformers: { format: 'compressed-tensors', schemes: [...packed, 'int4_wo_per_channel'] },
  onnxruntime: onnx,
};

export const runtimeNames: readonly RuntimeName[] = [
  'llama.cpp',
  'ollama',
  'vllm',
  'transformers',
  'onnxruntime',
  'web',
];

function choiceFor(model: OpenedModel, target: RuntimeName | undefined): Choice {
  const usual = { gguf: 'llama.cpp', onnx: 'onnxruntime' } as const;
  const own = usual[model.format as keyof typeof usual] ?? 'transformers';
  if (target === 'web') return model.format === 'onnx' ? onnx : gguf;
  return choices[target === 'ollama' ? 'llama.cpp' : (target ?? own)];
}

/** Whether two presets come to the same for a model, as where no group fits its rows. */
const isSame = (a: Plan, b: Plan) =>
  a.totals.bytesAfter === b.totals.bytesAfter &&
  a.tensors.every(({ action, spec }, i) => {
    const other = b.tensors[i];
    return action === other?.action && JSON.stringify(spec) === JSON.stringify(other.spec);
  });

/** The schemes that the model can have, by size, largest first. Errors: that of the first scheme if it can have none. */
export function schemesOf(
  model: OpenedModel,
  { schemes, target }: { schemes?: readonly string[]; target?: RuntimeName },
  planOf: (scheme: string, format: OutputFormat) => Plan,
): Scheme[] {
  const choice = choiceFor(model, target);
  const found: Scheme[] = [];
  let refusal: unknown = null;
  for (const scheme of new Set(schemes ?? choice.schemes)) {
    try {
      const plan = planOf(scheme, choice.format);
      const wrong = plan.diagnostics.find(({ severity }) => severity === 'error');
      if (wrong) throw failure('format-unsupported', wrong.where || scheme, wrong.message);
      const isNew = schemes || !found.some((other) => isSame(other.plan, plan));
      if (isNew && (plan.totals.quantized > 0 || schemes)) found.push({ scheme, format: plan.format, plan });
    } catch (error) {
      if (!(error instanceof QuantizationError)) throw error;
      if (schemes && error.code === 'config-invalid') throw error;
      refusal ??= error;
    }
  }
  const { title } = formats.outputs[choice.format];
  if (found.length === 0)
    throw (
      refusal ?? failure('argument-invalid', 'schemes', `none of them quantizes a weight of this model as ${title}`)
    );
  return found.sort((a, b) => b.plan.totals.bytesAfter - a.plan.totals.bytesAfter);
}
