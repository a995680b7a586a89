// Samples for calibrating an ONNX model. Without files there are none.
import { signal } from '@preact/signals';
import type { Model } from 'wasmquant';
import type { ModelInput } from 'wasmquant/onnxruntime';
import { quantizer } from '../app/engine';
import { explain, type Failure } from '../app/failure';
import type { RunningSample } from '../large/messages';
import { opened } from '../open/opened';
import { toolsOf } from './activations';

export interface GivenFeeds {
  /** The model they were checked against. */
  model: Model;
  /** Opened files. */
  files: Model[];
  /** What they were opened from, grouped as opened together. */
  groups: File[][];
  count: number;
}

const given = signal<GivenFeeds | null>(null);
export const feedsFailure = signal<Failure | null>(null);
/** Null: none is. */
export const runningSample = signal<RunningSample | null>(null);

/** The feeds of the model on screen. */
export function feeds(): GivenFeeds | null {
  return given.value?.model === opened.value?.model ? given.value : null;
}

/** The inputs that feeds must contain. */
export async function requiredInputs(model: Model): Promise<ModelInput[]> {
  const { modelInputs } = await toolsOf();
  return modelInputs(model).filter(({ optional }) => !optional);
}

async function closeAll(files: readonly Model[]): Promise<void> {
  await Promise.all(files.map((file) => file.close()));
}

export async function forgetFeeds(): Promise<void> {
  const former = given.value;
  given.value = null;
  feedsFailure.value = null;
  await closeAll(former?.files ?? []);
}

/** Single arrays are grouped with each other; archives and safetensors files stand alone. */
function groups(files: readonly File[]): File[][] {
  const isArray = ({ name }: File) => /\.npy$/i.test(name);
  const arrays = files.filter(isArray);
  const others = files.filter((file) => !isArray(file)).map((file) => [file]);
  return arrays.length > 0 ? [arrays, ...others] : others;
}

/** Opens files and checks them against the model; on failure the earlier ones are kept. */
export async function takeFeeds(files: readonly File[]): Promise<void> {
  const model = opened.value?.model;
  const engine = quantizer.value;
  if (!model || !engine || files.length === 0) return;
  feedsFailure.value = null;
  const parts = groups(files);
  const list: Model[] = [];
  try {
    for (const group of parts) list.push(await engine.open(group));
    const { feedsOf } = await toolsOf();
    const { count } = feedsOf({ Tensor: class {} }, model, ...list);
    const former = given.value;
    given.value = { model, files: list, groups: parts, count };
    await closeAll(former?.files ?? []);
  } catch (error) {
    await closeAll(list);
    feedsFailure.value = explain(error, 'These feeds do not fit the model');
  }
}
