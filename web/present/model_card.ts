/** A model card, the README.md of a repository of the Hugging Face Hub: YAML between dashes, then Markdown. */
import type { OutputFormat } from 'wasmquant';
import { hubLibraryOf } from './runtimes/hub_library.js';
import { bytesText, shareText } from './units.js';

/** One output. */
export interface CardRow {
  /** Name of the file, or of the folder. */
  name: string;
  /** Preset or config. */
  scheme: string;
  bytes: number;
  bitsPerWeight: number;
  /** What was measured of it, by the title of a column. */
  measured: Record<string, string>;
}

export interface Card {
  /** Of the model that was quantized. */
  source: {
    name: string;
    bytes: number;
    /** Its name on the Hub, `org/model`, if that is known. */
    repository: string | null;
    /** Its own card; null without one. */
    card: string | null;
  };
  format: OutputFormat;
  version: string;
  rows: CardRow[];
  /** How figures were found, below the table. */
  notes: string[];
  /** What was quantized to what, such as `24 × int4 per_group 32`. */
  specs: string;
  /** How to load the first. */
  load: string[];
  warnings: string[];
}

/** Keys of the source's card that hold for the output, too. */
const kCarried = ['license', 'license_name', 'license_link', 'language', 'pipeline_tag'];
const kLibrary = 'library_name';

/** The lines of a card's keys as they stand there, with those below them. */
function carriedLines(card: string | null, carried: string[]): string[] {
  const [, yaml] = /^---\r?\n([\s\S]*?)\r?\n---\s*(\r?\n|$)/.exec(card ?? '') ?? [];
  const lines: string[] = [];
  let isCarried = false;
  for (const line of yaml?.split(/\r?\n/) ?? []) {
    const [, key] = /^([\w-]+)\s*:/.exec(line) ?? [];
    if (key !== undefined) isCarried = carried.includes(key);
    if (isCarried && line.trim() !== '') lines.push(line);
  }
  return lines;
}

/** `org/model` of an `hf:` source, a Hub's address, or a folder of the Hub's cache; null of others. */
export function repositoryOf(source: string): string | null {
  const part = '[\\w.-]+';
  const patterns = [
    new RegExp(`^hf:(${part}/${part})`),
    new RegExp(`^https://huggingface\\.co/(${part}/${part})`),
    new RegExp(`models--(${part}?)--(${part})/snapshots/`),
  ];
  for (const pattern of patterns) {
    const [, first, second] = pattern.exec(source.replaceAll('\\', '/')) ?? [];
    if (first !== undefined) return second === undefined ? first : `${first}/${second}`;
  }
  return null;
}

const cellOf = (text: string) => text.replaceAll('|', '\\|').replace(/\s+/g, ' ');

function tableLines(rows: CardRow[], sourceBytes: number): string[] {
  const titles = [...new Set(rows.flatMap(({ measured }) => Object.keys(measured)))];
  const lineOf = (cells: string[]) => `| ${cells.map(cellOf).join(' | ')} |`;
  return [
    lineOf(['output', 'scheme', 'size', 'of the source', 'bits per weight', ...titles]),
    lineOf(['---', '---', '---:', '---:', '---:', ...titles.map(() => '---:')]),
    ...rows.map(({ name, scheme, bytes, bitsPerWeight, measured }) =>
      lineOf([
        `\`${name}\``,
        `\`${scheme}\``,
        bytesText(bytes),
        shareText(bytes, sourceBytes),
        bitsPerWeight.toFixed(2),
        ...titles.map((title) => measured[title] ?? ''),
      ]),
    ),
  ];
}

/** The whole file. What was not measured is not in it. */
export function modelCard({ source, format, version, rows, notes, specs, load, warnings }: Card): string {
  const { repository } = source;
  const library = hubLibraryOf(format);
  const from = repository === null ? source.name : `[${repository}](https://huggingface.co/${repository})`;
  const lines = [
    '---',
    ...carriedLines(source.card, library === null ? [...kCarried, kLibrary] : kCarried),
    ...(repository === null ? [] : [`base_model: ${repository}`, 'base_model_relation: quantized']),
    ...(library === null ? [] : [`${kLibrary}: ${library}`]),
    'tags:',
    ...[...new Set([format, 'quantized', 'wasmquant'])].map((tag) => `- ${tag}`),
    '---',
    '',
    `# ${repository?.split('/')[1] ?? source.name}, quantized`,
    '',
    `Made from ${from} (${bytesText(source.bytes)}) by wasmquant ${version}, as ${format}.`,
    '',
    ...tableLines(rows, source.bytes),
    ...notes.flatMap((note) => ['', note]),
    ...(specs === '' ? [] : ['', `Weights: ${specs}. What is not among them is as in the source.`]),
    ...(load.length > 0 ? ['', '## Load it', '', '```', ...load, '```'] : []),
    ...(warnings.length > 0 ? ['', '## Know before use', '', ...warnings.map((line) => `- ${line}`)] : []),
  ];
  return `${lines.join('\n')}\n`;
}
