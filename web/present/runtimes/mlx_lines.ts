// Folders of MLX: mlx-lm on the command line and in Python, and LM Studio.
import { python, shell } from './literals.js';
import { runtimes } from './table.js';
import type { LoadText, Written } from './written.js';

const { title, install } = runtimes.mlx;

/** Its glob for weights is model*.safetensors. */
const isFound = ({ report }: Written) => report.files.some(({ name }) => /^model.*\.safetensors$/.test(name));

/** What keeps mlx-lm from the files; empty if nothing does. */
function limitOf(written: Written): string {
  const limit = written.report.diagnostics.find(({ code }) => code === 'loader-limit');
  if (limit) return `mlx-lm cannot load this file (loader-limit): ${limit.hint}.`;
  if (!written.isFolder || written.model.config === null) return 'mlx-lm needs config.json in the same folder.';
  return isFound(written) ? '' : 'mlx-lm looks for model*.safetensors; rename the file.';
}

export function mlxTexts(written: Written): LoadText[] {
  const limit = limitOf(written);
  if (limit) return [{ title, lines: [limit] }];
  const path = written.pathOf();
  return [
    { title, lines: [`# ${install}`, `mlx_lm.generate --model ${shell(path)} --prompt "In the beginning"`] },
    {
      title: `${title} in Python`,
      lines: [`# ${install}`, 'from mlx_lm import load', `model, tokenizer = load(${python(path)})`],
    },
  ];
}
