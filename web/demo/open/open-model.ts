// From files, however they arrived, to an opened model.
import type { Model } from 'wasmquant';
import { quantizer } from '../app/engine';
import { explain } from '../app/failure';
import { choice } from '../configure/choice';
import { firstPreset, firstRecipe, formatsOf } from '../configure/formats';
import { run } from '../run/runs';
import { type OpenedModel, opened, openFailure, opening } from './opened';

const weightFile = /\.(safetensors|gguf|onnx)$/i;

const sample = { title: 'tiny-llama (sample)', location: 'tiny-llama', isSample: true as const };

function titleOf(weights: File[]): string {
  return weights.length === 1 && weights[0] ? weights[0].name : `${weights.length} shards`;
}

/** A single file by its name; of several the page does not know the folder's. */
function locationOf(weights: File[]): string {
  return weights.length === 1 && weights[0] ? weights[0].name : 'my-model';
}

/** Another format, and a preset of it, where the chosen one is not for this kind of model. */
function chooseFor(model: Model): void {
  const { format } = choice.value;
  if (model.format === 'gguf' && format !== 'gguf')
    choice.value = { preset: firstRecipe, format: 'gguf', configText: null };
  else if (!formatsOf(model).some(({ name }) => name === format)) {
    const kept = format === 'gguf' ? { preset: firstPreset, configText: null } : choice.value;
    choice.value = { ...kept, format: formatsOf(model)[0]?.name ?? 'compressed-tensors' };
  }
}

async function load(what: string, files: () => Promise<File[]>, known?: Omit<OpenedModel, 'model'>): Promise<void> {
  if (!quantizer.value || opening.value || run.value.state === 'running') return;
  opening.value = what;
  openFailure.value = null;
  try {
    const given = await files();
    if (given.length === 0) return;
    const weights = given.filter((file) => weightFile.test(file.name));
    if (weights.length === 0) {
      const names = given.slice(0, 3).map((file) => file.name);
      throw new Error(
        `No .safetensors, .gguf or .onnx file among ${names.join(', ')}${given.length > 3 ? ', …' : ''}.`,
      );
    }
    const model = await quantizer.value.open(given);
    const former = opened.value;
    opened.value = { model, ...(known ?? { title: titleOf(weights), location: locationOf(weights) }) };
    chooseFor(model);
    await former?.model.close();
  } catch (error) {
    openFailure.value = explain(error, `${what} could not be opened`);
  } finally {
    opening.value = null;
  }
}

export function openFiles(files: File[]): Promise<void> {
  const first = files[0];
  return load(files.length === 1 && first ? first.name : `${files.length} files`, async () => files);
}

export function openDrop(files: Promise<File[]>): Promise<void> {
  return load('The drop', () => files);
}

export function openSample(): Promise<void> {
  const names = ['model.safetensors', 'config.json', 'tokenizer.json', 'tokenizer_config.json'];
  const fetchFile = async (name: string) => {
    const response = await fetch(`./sample/${name}`);
    if (!response.ok) throw new Error(`The server answered ${response.status} for sample/${name}.`);
    return new File([await response.blob()], name);
  };
  return load('The sample', () => Promise.all(names.map(fetchFile)), sample);
}
