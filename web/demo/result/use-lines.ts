// How to load what was written, by the program that loads it.
import { formats, inputFormatOf } from 'wasmquant';
import type { FinishedRun } from '../run/runs';

export interface UseText {
  title: string;
  text: string;
}

/** A string literal of Python and JavaScript. */
const quoted = (text: string) => JSON.stringify(text);

/** A name for the folder that the files are put into. */
export function folderName({ modelTitle, choice }: FinishedRun): string {
  const stem = modelTitle
    .replace(/\.\w+$/, '')
    .replace(/[^\w.]+/g, ' ')
    .trim()
    .replaceAll(' ', '-');
  return `${stem || 'model'}-${choice.preset}`;
}

function weightFile({ report, files, plan }: FinishedRun): string {
  if (files?.handle.kind === 'file' && files.folder) return files.folder;
  const { container } = formats.outputs[plan.format];
  const names = report.files.map(({ name }) => name).filter((name) => inputFormatOf(name) === container);
  return names.sort()[0] ?? 'model';
}

function ggufTexts(done: FinishedRun): UseText[] {
  const file = weightFile(done);
  const { model } = done;
  const isEncoder = (model.metadata['general.architecture'] ?? model.config?.model_type) === 'bert';
  const name = folderName(done).toLowerCase();
  const ollama = `printf 'FROM ./${file.replaceAll("'", '')}\\n' > Modelfile\nollama create ${name} -f Modelfile\nollama run ${name}`;
  return [
    ...(isEncoder ? [] : [{ title: 'Ollama', text: ollama }]),
    {
      title: 'llama.cpp',
      text: `${isEncoder ? 'llama-embedding' : 'llama-cli'} -m ${quoted(file)} -p "In the beginning"`,
    },
    ...(isEncoder ? [] : [{ title: 'LM Studio', text: `lms import ${quoted(file)}` }]),
    {
      title: 'a web page',
      text: `// npm install @wllama/wllama\nimport { Wllama } from '@wllama/wllama';\nconst wllama = new Wllama(paths); // where its wasm files are\nawait wllama.loadModel([file]); // a Blob of ${file}`,
    },
  ];
}

function onnxTexts(done: FinishedRun): UseText[] {
  const file = quoted(weightFile(done));
  return [
    {
      title: 'a web page',
      text: `// npm install onnxruntime-web\nimport { InferenceSession } from 'onnxruntime-web';\nconst session = await InferenceSession.create(${file});`,
    },
    {
      title: 'Node',
      text: `// npm install onnxruntime-node\nimport { InferenceSession } from 'onnxruntime-node';\nconst session = await InferenceSession.create(${file});`,
    },
    {
      title: 'Python',
      text: `# pip install onnxruntime\nimport onnxruntime\nsession = onnxruntime.InferenceSession(${file})`,
    },
  ];
}

function pythonTexts(done: FinishedRun): UseText[] {
  const { report, model, plan } = done;
  const { packages, note, bfloat16Scales } = formats.outputs[plan.format];
  const folder = quoted(`./${folderName(done)}`);
  const vllm = { title: 'vLLM', text: `# pip install vllm\nvllm serve ${folder}` };
  const limit = report.diagnostics.find(({ code }) => code === 'loader-limit');
  const saysVllm = limit?.hint?.includes('with vLLM') === true;
  if (!model.config)
    return [
      {
        title: 'transformers',
        text: `# Put ${weightFile(done)} into the folder of the model, and quantization_config\n# from the saved config.json into its config.json.`,
      },
    ];
  if (limit) {
    const refused = {
      title: 'transformers',
      text: `# transformers cannot load this file:\n# ${limit.hint ?? limit.message}`,
    };
    return saysVllm ? [vllm, refused] : [refused];
  }
  const needed = report.diagnostics.find(({ code }) => code === 'loader-version')?.hint;
  const install = needed ? packages.replace('transformers', `"${needed}"`) : packages;
  const option = report.diagnostics.find(({ code }) => code === 'loader-option')?.hint ?? '';
  const { architectures } = model.config;
  const [first] = Array.isArray(architectures) ? (architectures as unknown[]) : [];
  const loader = typeof first === 'string' && /^[A-Za-z_]\w*$/.test(first) ? first : 'AutoModel';
  const names = [loader, ...(option.match(/\b[A-Z]\w*(?=\()/g) ?? [])].join(', ');
  const isBfloat16 = report.tensors.some(({ spec }) => bfloat16Scales.includes(spec?.scale_format ?? ''));
  const transformers = {
    title: 'transformers',
    text: [
      ...(note ? [`# ${note}`] : []),
      `# pip install ${install}`,
      `from transformers import ${names}`,
      `model = ${loader}.from_pretrained(`,
      `    ${folder}, dtype="${isBfloat16 ? 'bfloat16' : 'auto'}"${option && `, ${option}`})`,
    ].join('\n'),
  };
  return plan.format === 'compressed-tensors' ? [transformers, vllm] : [transformers];
}

export function useTexts(done: FinishedRun): UseText[] {
  const { container, isWholeFile } = formats.outputs[done.plan.format];
  if (!isWholeFile) return pythonTexts(done);
  return formats.inputs[container].hasGraph ? onnxTexts(done) : ggufTexts(done);
}
