// From files, however they arrived, to an opened model.
import { explain } from '../app/failure';
import { choice, opened, openFailure, opening, quantizer, run } from '../app/state';
import { firstRecipe } from '../configure/formats';

const weightFile = /\.(safetensors|gguf)$/i;

const sampleName = 'tiny-llama (sample)';

function titleOf(weights: File[]): string {
  return weights.length === 1 && weights[0] ? weights[0].name : `${weights.length} shards`;
}

async function load(what: string, files: () => Promise<File[]>, title?: string): Promise<void> {
  if (!quantizer.value || opening.value || run.value.state === 'running') return;
  opening.value = what;
  openFailure.value = null;
  try {
    const given = await files();
    if (given.length === 0) return;
    const weights = given.filter((file) => weightFile.test(file.name));
    if (weights.length === 0) {
      const names = given.slice(0, 3).map((file) => file.name);
      throw new Error(`No .safetensors or .gguf file among ${names.join(', ')}${given.length > 3 ? ', …' : ''}.`);
    }
    const model = await quantizer.value.open(given);
    const former = opened.value;
    opened.value = { model, title: title ?? titleOf(weights) };
    if (model.format === 'gguf' && choice.value.format !== 'gguf')
      choice.value = { preset: firstRecipe, format: 'gguf', configText: null };
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
  const names = ['model.safetensors', 'config.json', 'tokenizer.json'];
  const fetchFile = async (name: string) => {
    const response = await fetch(`./sample/${name}`);
    if (!response.ok) throw new Error(`The server answered ${response.status} for sample/${name}.`);
    return new File([await response.blob()], name);
  };
  return load('The sample', () => Promise.all(names.map(fetchFile)), sampleName);
}
