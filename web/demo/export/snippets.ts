// The same run as a command line and as JavaScript, ready to paste.
import type { OutputFormat } from 'wasmquant';
import { formats, weightFilePattern } from 'wasmquant/internal';
import { nodeRuntime } from '../../present/runtimes/onnx_lines';
import type { Choice } from '../configure/choice';

export interface Snippet {
  choice: Choice;
  /** The model as a command line names it. */
  location: string;
  /** The calibration data: a text, or feeds by the names of files that belong together. */
  calibration: 'text' | { feeds: string[][] } | null;
}

/** Quoted for POSIX shells where needed. */
function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function outputOf(location: string, format: OutputFormat): string {
  const stem = location.split('/').at(-1)?.replace(weightFilePattern, '') || 'model';
  const { container, isWholeFile } = formats.outputs[format];
  return `${stem}-quantized${isWholeFile ? formats.inputs[container].extensions[0] : ''}`;
}

export function commandLine({ choice, location, calibration }: Snippet): string {
  const { preset, format, configText } = choice;
  const parts = [
    `npx wasmquant quantize ${shellWord(location)} -o ${shellWord(outputOf(location, format))}`,
    configText === null ? `--preset ${shellWord(preset)}` : '--config config.json',
    `--format ${format}`,
    ...(calibration === 'text' ? ['--calibration-text text.txt'] : []),
    ...(calibration !== 'text' && calibration ? ['--calibration activations.safetensors'] : []),
  ];
  return parts.join(' \\\n  ');
}

export function javaScript({ choice, location, calibration }: Snippet): string {
  const { preset, format, configText } = choice;
  const config = configText === null ? JSON.stringify(preset) : configText.trim();
  const isText = calibration === 'text';
  const feeds = calibration !== null && calibration !== 'text' ? calibration.feeds : null;
  const opened = feeds?.map((names) => `await quantizer.open(${JSON.stringify(names)})`);
  const lines = [
    "import { createQuantizer } from 'wasmquant';",
    ...(feeds
      ? [
          `import * as ort from '${nodeRuntime}';`,
          "import { captureActivations, feedsOf } from 'wasmquant/onnxruntime';",
        ]
      : []),
    ...(isText ? ["import { Tokenizer } from '@huggingface/tokenizers';"] : []),
    '',
    `const config = ${config};`,
    'const quantizer = await createQuantizer();',
    `const model = await quantizer.open(${JSON.stringify(location)});`,
    ...(opened ? [`const feeds = feedsOf(ort, model, ${opened.join(', ')});`] : []),
    ...(isText
      ? [
          'const json = async (name) => JSON.parse(new TextDecoder().decode(await model.siblingFile(name)));',
          "const text = process.getBuiltinModule('fs').readFileSync('text.txt', 'utf8');",
          "const tokenizer = new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'));",
        ]
      : []),
    'await quantizer.quantizeModel(model, config, {',
    `  target: ${JSON.stringify(outputOf(location, format))},`,
    `  format: ${JSON.stringify(format)},`,
    ...(feeds ? ['  calibration: captureActivations(ort, model, feeds),'] : []),
    ...(isText ? ['  calibration: { tokens: { text, tokenizer, sequences: 32 } },'] : []),
    '});',
    'await model.close();',
    'await quantizer[Symbol.asyncDispose]();',
  ];
  return `${lines.join('\n')}\n`;
}
