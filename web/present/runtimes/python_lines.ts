// Folders of Hugging Face models: transformers, sentence-transformers and vLLM, or diffusers.
import { printable } from '../printable.js';
import { python, shell } from './literals.js';
import { runtimes } from './table.js';
import type { LoadText, Written } from './written.js';

/** Names that transformers looks for; an index lists the shards. */
const weightFiles = ['model.safetensors', 'model.safetensors.index.json'];

/** How a class is imported and called. */
interface Loader {
  name: string;
  /** Whether its code comes with the model. */
  hasOwnCode: boolean;
}

type Config = Record<string, unknown>;

const isClassName = (name: unknown): name is string => typeof name === 'string' && /^[A-Za-z_]\w*$/.test(name);

/** The class that config.json names, or a sentence about what is missing. Without the class the head is unknown. */
function loaderOf(config: Config, { report }: Written): Loader | string {
  const { architectures } = config;
  const name: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  if (!isClassName(name))
    return 'config.json names no class ("architectures": ["…"]), so transformers cannot load these weights.';
  // Code next to the weights, or in a repository: {"AutoModelForCausalLM": "[repository--]modeling_file.Class"}
  const code = Object.entries(Object(config.auto_map) as Record<string, unknown>).find(
    ([auto, place]) => /^AutoModel\w*$/.test(auto) && typeof place === 'string' && place.endsWith(`.${name}`),
  );
  if (!code) return { name, hasOwnCode: false };
  const file = `${String(code[1]).slice(0, -name.length - 1)}.py`;
  if (!file.includes('--') && !report.files.some((written) => written.name === file))
    return `config.json says that the model's code is in ${printable(file)} (auto_map), which is not in the folder of the weights; copy it there to load them.`;
  return { name: code[0], hasOwnCode: true };
}

const hintOf = ({ report }: Written, code: string) => report.diagnostics.find((one) => one.code === code)?.hint ?? '';

/** What pip has to install: with the release of transformers that the file needs, if it needs one. */
function packagesOf(written: Written): string {
  const needed = hintOf(written, 'loader-version');
  const { packages } = written.format;
  return needed ? packages.replace('transformers', `"${needed}"`) : packages;
}

const vllm = (path: string): LoadText => ({
  title: runtimes.vllm.title,
  lines: [`# ${runtimes.vllm.install}`, `vllm serve ${shell(path)}`],
});

/** vLLM reads compressed-tensors, and writes text: it serves decoders, with images or without. */
const isForVllm = ({ format, model: { config } }: Written, { name, hasOwnCode }: Loader) =>
  format.title === 'compressed-tensors' &&
  !hasOwnCode &&
  (name.endsWith('ForCausalLM') || (name.endsWith('ForConditionalGeneration') && config?.vision_config !== undefined));

/** sentence-transformers calls a model's forward itself, past the hook in which compressed-tensors decodes weights: they are decoded while
 * they are loaded. */
function sentenceTexts(written: Written): LoadText[] {
  const { format, hasModules } = written;
  const path = python(written.pathOf());
  const isPlain = !format.needsConfigBlock;
  if (!hasModules || !(isPlain || format.title === 'compressed-tensors')) return [];
  const lines = [
    `# ${runtimes['sentence-transformers'].install} ${packagesOf(written).replace(/^transformers ?/, '')}`.trimEnd(),
    'from sentence_transformers import SentenceTransformer',
    ...(isPlain ? [] : ['from transformers import CompressedTensorsConfig']),
    isPlain
      ? `model = SentenceTransformer(${path})`
      : `model = SentenceTransformer(${path}, model_kwargs={"quantization_config": CompressedTensorsConfig(dequantize=True)})`,
  ];
  return [{ title: 'sentence-transformers', lines }];
}

function transformersText(written: Written, { name, hasOwnCode }: Loader): LoadText {
  const { bfloat16Scales } = written.format;
  const isBfloat16 = written.report.tensors
    .flatMap(({ spec }) => spec ?? [])
    .some(({ scale_format }) => bfloat16Scales.includes(scale_format ?? ''));
  const option = hintOf(written, 'loader-option');
  const names = [name, ...(option.match(/\b[A-Z]\w*(?=\()/g) ?? [])];
  const options = [`dtype="${isBfloat16 ? 'bfloat16' : 'auto'}"`, option, hasOwnCode ? 'trust_remote_code=True' : ''];
  const call = [python(written.pathOf()), ...options.filter(Boolean)].join(', ');
  return {
    title: 'transformers',
    lines: [
      `# pip install ${packagesOf(written)}`,
      `from transformers import ${names.join(', ')}`,
      `model = ${name}.from_pretrained(${call})`,
    ],
  };
}

const sentence = (title: string, text: string): LoadText => ({ title, lines: [text] });

/** A part of a pipeline of diffusers, whose config.json names the class in `_class_name`. */
function diffusersTexts(written: Written, className: string): LoadText[] {
  if (written.format.needsConfigBlock) {
    const { title } = written.format;
    return [sentence('diffusers', `diffusers does not read ${title}; write the model with --format fake-quantized.`)];
  }
  const lines = [
    `# ${runtimes.diffusers.install}`,
    `from diffusers import ${className}`,
    `model = ${className}.from_pretrained(${python(written.pathOf())})`,
  ];
  return [{ title: 'diffusers', lines }];
}

/** A file without its folder, or in a folder without config.json. */
function looseText({ format }: Written): LoadText {
  const block = format.needsConfigBlock
    ? ', and quantization_config in its config.json (wasmquant plan --json shows it)'
    : '';
  return sentence('transformers', `transformers needs its config.json in the same folder${block}.`);
}

function limitedTexts(written: Written, hint: string): LoadText[] {
  const text = `transformers cannot load this file (loader-limit): ${hint}.`;
  return [sentence('transformers', text), ...(hint.includes('with vLLM') ? [vllm(written.pathOf())] : [])];
}

function textsOf(written: Written): LoadText[] {
  const { config } = written.model;
  const names = written.report.files.map(({ name }) => name);
  if (!written.isFolder || config === null) return [looseText(written)];
  if (isClassName(config._class_name)) return diffusersTexts(written, config._class_name);
  const limit = hintOf(written, 'loader-limit');
  if (limit) return limitedTexts(written, limit);
  if (!names.some((name) => weightFiles.includes(name))) {
    const other = names.find((name) => /\.safetensors$/i.test(name)) ?? '';
    return [
      sentence('transformers', `transformers looks for ${weightFiles.join(' or ')}; this is ${printable(other)}.`),
    ];
  }
  const loader = loaderOf(config, written);
  if (typeof loader === 'string') return [sentence('transformers', loader)];
  const served = isForVllm(written, loader) ? [vllm(written.pathOf())] : [];
  return [...sentenceTexts(written), transformersText(written, loader), ...served];
}

export function pythonTexts(written: Written): LoadText[] {
  const { packages, note } = written.format;
  if (packages === '') return [];
  const [first, ...others] = textsOf(written);
  if (!first || !note) return first ? [first, ...others] : [];
  const isCode = first.lines.length > 1;
  return [{ ...first, lines: [isCode ? `# ${note}` : note, ...first.lines] }, ...others];
}
