/** How to load the written files, for people who know the runtime but not this format. */
import { join } from 'node:path';
import { formats, type InputFormat, inputFormatOf, type Model, type Report } from '../lib/node.js';
import { printable } from './terminal.js';

/** A string literal valid in Python and safe in a terminal: printable ASCII with escapes. */
function pythonString(text: string): string {
  const escaped = text.replace(/[\\"]/g, '\\$&');
  return `"${printable(escaped).replace(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => `\\U${hex.padStart(8, '0')}`)}"`;
}

/** The first file of a whole model, as a string literal; of a split model the one that runtimes open. */
function modelPath(report: Report, container: InputFormat, output: string, isFolder: boolean): string {
  const names = report.files.map(({ name }) => name).filter((name) => inputFormatOf(name) === container);
  return pythonString(isFolder ? join(output, names.sort()[0] ?? '') : output);
}

/** ONNX runtimes, in JavaScript and Python. */
function onnxLines(path: string): string[] {
  return [
    '// npm install onnxruntime-node   (in a page: onnxruntime-web)',
    "import { InferenceSession } from 'onnxruntime-node';",
    `const session = await InferenceSession.create(${path});`,
    '# pip install onnxruntime',
    `session = onnxruntime.InferenceSession(${path})`,
  ];
}

/** llama.cpp, and wllama in JavaScript. */
function ggufLines(model: Model, path: string): string[] {
  const architecture = model.metadata['general.architecture'] ?? model.config?.model_type;
  const tool = architecture === 'bert' ? 'llama-embedding' : 'llama-completion';
  return [
    '# llama.cpp',
    `${tool} -m ${path} -p "In the beginning"`,
    '// npm install @wllama/wllama   (in a page; files: Blobs)',
    'await wllama.loadModel(files);',
  ];
}

/** Names that transformers looks for; an index lists the shards. */
const kWeightFiles = ['model.safetensors', 'model.safetensors.index.json'];

/** How a class is imported and called. */
interface Loader {
  name: string;
  /** Arguments after the path. */
  options: string;
}

/** The class that config.json names, or a sentence about what is missing. Without the class the head is unknown. */
function loaderOf(config: Record<string, unknown>, report: Report): Loader | string {
  const { architectures } = config;
  const name: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  if (typeof name !== 'string' || !/^[A-Za-z_]\w*$/.test(name))
    return 'config.json names no class ("architectures": ["…"]), so transformers cannot load these weights.';
  // Code next to the weights, or in a repository: {"AutoModelForCausalLM": "[repository--]modeling_file.Class"}
  const code = Object.entries(Object(config.auto_map) as Record<string, unknown>).find(
    ([auto, place]) => /^AutoModel\w*$/.test(auto) && typeof place === 'string' && place.endsWith(`.${name}`),
  );
  if (!code) return { name, options: '' };
  const file = `${String(code[1]).slice(0, -name.length - 1)}.py`;
  if (!file.includes('--') && !report.files.some((written) => written.name === file))
    return `config.json says that the model's code is in ${printable(file)} (auto_map), which is not in the folder of the weights; copy it there to load them.`;
  return { name: code[0], options: ', trust_remote_code=True' };
}

/** What pip has to install: with the release of transformers that the file needs, if it needs one. */
function neededPackages(packages: string, report: Report): string {
  const needed = report.diagnostics.find(({ code }) => code === 'loader-version')?.hint;
  return needed ? packages.replace('transformers', `"${needed}"`) : packages;
}

/**
 * Lines that show how to load `output` (a path), which `report` describes. `isFolder`: it contains config.json and all weights; a
 * single file must first be moved into a model folder. Empty for formats without a known loader.
 */
export function loadLines(model: Model, report: Report, output: string, isFolder: boolean): string[] {
  if (report.format === null) return [];
  const format = formats.outputs[report.format];
  const { packages, note: sentence, container, needsConfigBlock } = format;
  if (format.isWholeFile) {
    const path = modelPath(report, container, output, isFolder);
    return formats.inputs[container].hasGraph ? onnxLines(path) : ggufLines(model, path);
  }
  if (packages === '') return [];
  const specs = report.tensors.flatMap(({ spec }) => spec ?? []);
  const isBfloat16 = specs.some(({ scale_format }) => format.bfloat16Scales.includes(scale_format ?? ''));
  const note = sentence ? [sentence] : [];
  if (!isFolder || model.config === null) {
    const block = needsConfigBlock
      ? ', and quantization_config in its config.json (wasmquant plan --json shows it)'
      : '';
    return [...note, `transformers needs its config.json in the same folder${block}.`];
  }
  const limit = report.diagnostics.find(({ code }) => code === 'loader-limit');
  if (limit) {
    const vllm = limit.hint?.includes('with vLLM') ? ['# pip install vllm', `vllm serve ${pythonString(output)}`] : [];
    return [...note, `transformers cannot load this file (${limit.code}): ${limit.hint}.`, ...vllm];
  }
  if (!report.files.some(({ name }) => kWeightFiles.includes(name))) {
    const other = report.files.find(({ name }) => /\.safetensors$/i.test(name))?.name ?? '';
    return [...note, `transformers looks for ${kWeightFiles.join(' or ')}; this is ${printable(other)}.`];
  }
  const loader = loaderOf(model.config, report);
  if (typeof loader === 'string') return [...note, loader];
  const dtype = isBfloat16 ? 'bfloat16' : 'auto';
  const option = report.diagnostics.find(({ code }) => code === 'loader-option')?.hint ?? '';
  const names = [loader.name, ...(option.match(/\b[A-Z]\w*(?=\()/g) ?? [])];
  const options = `${option && `, ${option}`}${loader.options}`;
  return [
    ...note,
    `# pip install ${neededPackages(packages, report)}`,
    `from transformers import ${names.join(', ')}`,
    `model = ${loader.name}.from_pretrained(${pythonString(output)}, dtype="${dtype}"${options})`,
  ];
}
