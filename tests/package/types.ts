// Compiled against the packed package by several versions of TypeScript, strictly and with declarations checked: what a user
// writes must fit, and what is wrong must not. Never run.
import {
  type Comparison,
  type Config,
  createQuantizer,
  type Diagnostic,
  isQuantizationError,
  type Plan,
  type PresetName,
  perGroup,
  QuantizationError,
  type QuantizationSpec,
  quarkConfig,
  type RunReport,
  type Target,
} from 'wasmquant';
import wasmModule from 'wasmquant/wasmquant.wasm';

type IsAny<T> = 0 extends 1 & T ? true : false;
const notAny = <T>(_: IsAny<T> extends true ? never : T): void => {};

export async function model(target: Target, source: File | Uint8Array): Promise<number> {
  await using quantizer = await createQuantizer({ threads: 2, wasmModule });
  await using opened = await quantizer.open(source);
  const plan: Plan = await quantizer.plan(opened, 'int4_wo_128', { format: 'compressed-tensors' });
  for (const { name, spec, reason } of plan.tensors) if (spec) notAny<string>(`${name}: ${reason.text}`);
  const report: RunReport = await quantizer.quantizeModel(opened, 'int4_wo_128', {
    target,
    signal: AbortSignal.timeout(60_000),
    onProgress: ({ phase, bytesDone, bytesTotal }) => notAny<string>(`${phase} ${bytesDone / bytesTotal}`),
  });
  notAny(report.tensors[0]);
  notAny(report.totals.bitsPerWeight);
  // @ts-expect-error: only a plan says that it is of a calibrated run
  await quantizer.quantizeModel(opened, 'fp8', { target, calibrated: true });
  const compared: Comparison = await quantizer.compare(opened, opened);
  notAny(compared.outputs?.error);
  // @ts-expect-error: a comparison writes nothing
  notAny(compared.format);
  return report.totals.bytesAfter;
}

export async function tensor(values: Float32Array): Promise<Float32Array> {
  await using quantizer = await createQuantizer({ threads: 0 });
  const spec: QuantizationSpec = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
  using observer = quantizer.createObserver(spec);
  observer.update({ data: values, shape: [1, values.length] });
  notAny(observer.finish().scale);
  const quantized = quantizer.quantize({ data: values, shape: [1, values.length] }, spec);
  notAny(quantized.codes);
  return quantizer.dequantize(quantized);
}

export async function config(): Promise<Diagnostic[]> {
  await using quantizer = await createQuantizer();
  try {
    quantizer.parseConfig(quarkConfig(perGroup('int4', 128), { exclude: ['lm_head'] }));
  } catch (error) {
    if (isQuantizationError(error, 'config-invalid')) {
      const code: 'config-invalid' = error.code;
      notAny(code);
      return error.diagnostics ?? [];
    }
    if (error instanceof QuantizationError) return error.diagnostics ?? [];
    throw error;
  }
  // @ts-expect-error: no such code
  isQuantizationError(null, 'config-wrong');
  const given: Config[] = ['int4_wo_128', '{"dtype":"int8"}', { global_quant_config: { weight: { dtype: 'int8' } } }];
  const preset: PresetName = 'q4_k_m';
  // @ts-expect-error: no such preset
  const none: PresetName = 'q4_k_z';
  notAny([given, preset, none]);
  const edited = quantizer.presetConfig('int8', { best: true, exclude: ['*.gate'] });
  quantizer.presetConfig(edited, { layers: { '*.down_proj': 'int8' } });
  // @ts-expect-error: no such edit
  quantizer.presetConfig('int8', { bestest: true });
  // @ts-expect-error: no such dialect
  quantizer.convertConfig({}, 'quarks');
  // @ts-expect-error: no such scheme
  const spec: QuantizationSpec = { dtype: 'int8', qscheme: 'per_row' };
  return quantizer.checkConfig(spec);
}
