// The same run as a command line and as JavaScript, ready to be pasted.
import type { OutputFormat } from 'wasmquant';
import type { Choice } from '../configure/choice';

export interface Snippet {
  choice: Choice;
  /** Model as a command line names it. */
  location: string;
  /** Whether the config has algorithms that look at activations. */
  isCalibrated: boolean;
}

/** Quoted for POSIX shells where needed. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function outputOf(location: string, format: OutputFormat): string {
  const stem =
    location
      .split('/')
      .at(-1)
      ?.replace(/\.(safetensors|gguf|onnx|np[yz])$/i, '') || 'model';
  return format === 'gguf' || format === 'onnx' ? `${stem}-quantized.${format}` : `${stem}-quantized`;
}

export function commandLine({ choice, location, isCalibrated }: Snippet): string {
  const { preset, format, configText } = choice;
  const parts = [
    `npx wasmquant quantize ${shellWord(location)} -o ${shellWord(outputOf(location, format))}`,
    configText === null ? `--preset ${shellWord(preset)}` : '--config config.json',
    `--format ${format}`,
    ...(isCalibrated ? ['--calibration-text text.txt'] : []),
  ];
  return parts.join(' \\\n  ');
}

export function javaScript({ choice, location, isCalibrated }: Snippet): string {
  const { preset, format, configText } = choice;
  const config = configText === null ? JSON.stringify(preset) : configText.trim();
  const lines = [
    "import { createQuantizer } from 'wasmquant';",
    ...(isCalibrated ? ["import { Tokenizer } from '@huggingface/tokenizers';"] : []),
    '',
    `const config = ${config};`,
    'const quantizer = await createQuantizer();',
    `const model = await quantizer.open(${JSON.stringify(location)});`,
    ...(isCalibrated
      ? [
          'const json = async (name) => JSON.parse(new TextDecoder().decode(await model.companion(name)));',
          "const text = process.getBuiltinModule('fs').readFileSync('text.txt', 'utf8');",
          "const tokenizer = new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'));",
        ]
      : []),
    'await quantizer.quantizeModel(model, config, {',
    `  target: ${JSON.stringify(outputOf(location, format))},`,
    `  format: ${JSON.stringify(format)},`,
    ...(isCalibrated ? ['  calibration: { tokens: { text, tokenizer, sequences: 32 } },'] : []),
    '});',
    'await model.close();',
    'await quantizer[Symbol.asyncDispose]();',
  ];
  return `${lines.join('\n')}\n`;
}
