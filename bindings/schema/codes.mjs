// What is made of the core's tables of codes (src/core/codes/error.def, src/core/codes/diagnostics.def): the library's types, the texts
// of `wasmquant explain` and of the page, and the guide.
//   node bindings/schema/codes.mjs        writes web/docs/diagnostics.md from the last build
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, root } from '../../tests/setup/command.mjs';

const source = '// Made by the build of src/core/codes/error.def and src/core/codes/diagnostics.def.\n';
const list = (rows) => rows.map(({ name }) => `  '${name}',\n`).join('');

/** web/lib/generated/codes.ts: names as arrays and as a type. */
export function codeTypes({ errors, diagnostics }) {
  const by = (reporter) => errors.filter((row) => row.reporter === reporter);
  return `${source}
/** Codes that the core reports. What each means: the guide "Errors and diagnostics", or \`wasmquant explain CODE\`. */
export const coreErrorCodes = [
${list(by('core'))}] as const;

/** Codes that the library adds. */
export const libraryErrorCodes = [
${list(by('library'))}] as const;

/**
 * Every code of a {@link Diagnostic}. What each means and what to do is in the guide "Errors and diagnostics", which
 * \`wasmquant explain CODE\` prints.
 */
export type DiagnosticCode =
  | (typeof coreErrorCodes)[number]
  | (typeof libraryErrorCodes)[number]
${diagnostics.map(({ name }) => `  | '${name}'`).join('\n')};
`;
}

/** web/present/generated/code_texts.ts: what each code means and what to do. */
export function codeTexts({ errors, diagnostics }) {
  const rows = [
    ...errors.map(({ name, meaning, advice }) => [name, { severities: 'error', meaning, advice }]),
    ...diagnostics.map(({ name, severities, meaning, advice }) => [name, { severities, meaning, advice }]),
  ];
  return `${source}
/** Of a code: the severities it comes with, a sentence on what it means, a sentence on what to do. */
export interface CodeText {
  severities: string;
  meaning: string;
  advice: string;
}

/** By code. */
export const codeTexts: Record<string, CodeText> = ${JSON.stringify(Object.fromEntries(rows), null, 2)};
`;
}

const section = ({ name, severities = 'error', meaning, advice }) =>
  `### ${name}\n\n(${severities}) ${meaning}\n\nWhat to do: ${advice}\n`;

/** web/docs/diagnostics.md: a heading for each code, so that each has an anchor. */
export function codeGuide({ errors, diagnostics }) {
  const part = (title, text, rows) => `## ${title}\n\n${text}\n\n${rows.map(section).join('\n')}`;
  const byName = (rows) => [...rows].sort((a, b) => (a.name < b.name ? -1 : 1));
  return `---

title: Errors and diagnostics
group: Reference

---

# Errors and diagnostics

<!-- Made by \`node bindings/schema/codes.mjs\` of src/core/codes/error.def and src/core/codes/diagnostics.def. -->

Every problem has a code, a place and a sentence. \`wasmquant explain CODE\` prints what is written here.
In TypeScript \`DiagnosticCode\` is the union of all codes, and \`QuantizationError.code\` of those of errors.

${part('Diagnostics', 'Plans, reports and `checkConfig` list them. Errors stop a run; warnings and notes do not.', byName(diagnostics))}
${part('Errors', 'A call that fails throws a `QuantizationError` with one of these codes. Diagnostics of severity error may have them, too.', byName(errors))}`;
}

/** The tables of the last build. */
export function builtCodes() {
  const program = join(root, 'build/wasm/wasmquant_schema.cjs');
  return JSON.parse(execFileSync(process.execPath, [program], { encoding: 'utf8', maxBuffer: 64 << 20 })).codes;
}

if (process.argv[1] === import.meta.filename)
  main(() => writeFileSync(join(root, 'web/docs/diagnostics.md'), codeGuide(builtCodes())));
