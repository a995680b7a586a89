// GGUF files: text models run in llama.cpp and what is built on it, others in programs of their own.
import { printable } from '../printable.js';
import { type GgufUse, useOf } from './gguf_architectures.js';
import { shell } from './literals.js';
import { runtimes } from './table.js';
import type { LoadText, Written } from './written.js';

const prompt = '"In the beginning"';
/** The longest file that a page loads in one piece. */
const longestBlob = 2 ** 31;

const llama = (command: string, ...remarks: string[]): LoadText => ({
  title: 'llama.cpp',
  lines: ['# llama.cpp', ...remarks.map((remark) => `# ${remark}`), command],
});

function ollama(path: string): LoadText {
  const name = /([^/\\]*?)(\.gguf)?$/i.exec(path)?.[1] ?? '';
  const model =
    name
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, '-')
      .replace(/^[^a-z0-9]+/, '') || 'model';
  const from = /^(\/|\.\.?\/|[a-z]:)/i.test(path) ? path : `./${path}`;
  return {
    title: runtimes.ollama.title,
    lines: [
      '# Ollama',
      `echo ${shell(`FROM ${from}`)} > Modelfile`,
      `ollama create ${model} -f Modelfile`,
      `ollama run ${model} ${prompt}`,
    ],
  };
}

function wllama({ report }: Written): LoadText[] {
  const isShort = report.files.every(({ bytes }) => bytes < longestBlob);
  const lines = [
    `// ${runtimes.wllama.install}`,
    "import { Wllama } from '@wllama/wllama';",
    "import wasm from '@wllama/wllama/esm/wasm/wllama.wasm?url';",
    'const wllama = new Wllama({ default: wasm });',
    'await wllama.loadModel(files); // Blobs of the GGUF files',
  ];
  return isShort ? [{ title: 'a web page', lines }] : [];
}

const byUse: Record<GgufUse, (written: Written, path: string) => LoadText[]> = {
  text: (written, path) => [
    ollama(path),
    llama(`llama-completion -m ${shell(path)} -p ${prompt}`),
    { title: runtimes.lmstudio.title, lines: ['# LM Studio', `lms import ${shell(path)}`] },
    ...wllama(written),
  ],
  embeddings: (written, path) => [llama(`llama-embedding -m ${shell(path)} -p ${prompt}`), ...wllama(written)],
  'masked-text': (_, path) => [llama(`llama-diffusion-cli -m ${shell(path)} -p ${prompt} --diffusion-steps 128`)],
  speech: (_, path) => [
    llama(
      `llama-tts -m TEXT.gguf -mv ${shell(path)} -p ${prompt}`,
      'TEXT.gguf: the model that writes the codes of speech',
    ),
  ],
  projector: (_, path) => [
    llama(
      `llama-mtmd-cli -m TEXT.gguf --mmproj ${shell(path)} --image IMAGE.jpg -p "Describe the image."`,
      'TEXT.gguf: the text model that this encoder belongs to',
    ),
  ],
  image: (_, path) => [
    {
      title: 'ComfyUI',
      lines: [
        '# ComfyUI with its extension ComfyUI-GGUF, node "Unet Loader (GGUF)"',
        `mv ${shell(path)} ComfyUI/models/unet/`,
      ],
    },
    {
      title: 'stable-diffusion.cpp',
      lines: [
        '# stable-diffusion.cpp; add the text encoders and the VAE of the model (--clip_l, --t5xxl, --vae)',
        `sd-cli --diffusion-model ${shell(path)} -p "a lighthouse"`,
      ],
    },
  ],
};

const sentence = (text: string): LoadText[] => [{ title: 'llama.cpp', lines: [text] }];

/** What a file is for, or a sentence. A file made from a Hugging Face folder is of a family that llama.cpp has. */
function useOrReason({ model: { metadata, config }, isProjector, hasModules }: Written): GgufUse | string {
  const architecture = metadata['general.architecture'];
  if (isProjector) return 'projector';
  if (metadata['general.type'] === 'imatrix')
    return 'This file is an importance matrix: llama-quantize reads it (--imatrix), and no program runs it.';
  if (architecture === undefined && config === null)
    return 'The file does not name its architecture (general.architecture), so llama.cpp cannot load it.';
  const use = architecture === undefined ? (useOf(String(config?.model_type)) ?? 'text') : useOf(architecture);
  if (use === null)
    return `llama.cpp is not known to have the architecture "${printable(architecture ?? '')}"; load the file with the program that it was made for.`;
  const pools = hasModules || !['0', undefined].includes(metadata[`${architecture}.pooling_type`]);
  return use === 'text' && pools ? 'embeddings' : use;
}

export function ggufTexts(written: Written, path: string): LoadText[] {
  const use = useOrReason(written);
  return use in byUse ? byUse[use as GgufUse](written, path) : sentence(use);
}
