// Figures of guides: a section that states a measured size, time or loss also has the command that gives it. Sections whose figures are
// not measured, such as limits and layouts, say so in a comment: `<!-- fixed: where the figures come from -->`. Pages that a command
// writes name it in their first lines.

const figure =
  /(?<![\w.-])\d[\d,.]*\s?(?:[KMG]i?B|kB|bytes|ms|s|seconds|minutes|%|×|dB|nats|GB\/s|MB\/s|bits per byte|bits a byte|tokens per second|million)(?!\w)/;
const command = /npm (run|test|start)|npx wasmquant|node tests\/|`wasmquant \w+/;
const written = /`npm (run|test)[^`]*` writes this page|made by trying/;

/** Sections of a page: `{ line, lines }`, each from a heading to the next. Code is not prose: its lines have `isCode`. */
function sectionsOf(markdown) {
  const sections = [{ line: 1, lines: [] }];
  let isCode = false;
  for (const [index, text] of markdown.split('\n').entries()) {
    if (text.startsWith('```')) isCode = !isCode;
    if (!isCode && /^#{1,4} /.test(text)) sections.push({ line: index + 1, lines: [] });
    sections.at(-1).lines.push({ text, number: index + 1, isCode });
  }
  return sections;
}

/** A sentence for every section of a page whose figures nobody can repeat. */
export function* figureProblems(markdown) {
  if (written.test(markdown.slice(0, 1500))) return;
  for (const { lines } of sectionsOf(markdown)) {
    const text = lines.map((line) => line.text).join('\n');
    if (command.test(text) || text.includes('<!-- fixed: ')) continue;
    const stated = lines.find((line) => !line.isCode && figure.test(line.text.replace(/`[^`]*`|\]\([^)]*\)/g, '')));
    if (stated)
      yield `line ${stated.number} states a figure, and its section has no command that gives it: ${stated.text.trim()}`;
  }
}
