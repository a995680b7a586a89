/** `wasmquant explain CODE`: what the code of an error or diagnostic means, and what to do. */
import { type CodeText, codeTexts } from '../../present/generated/code_texts.js';
import { usageError } from '../failure.js';
import type { Context, Outcome } from '../outcome.js';
import { table } from '../tables.js';

interface Row extends CodeText {
  code: string;
}

const rows: Row[] = Object.entries(codeTexts).map(([code, text]) => ({ code, ...text }));

/** All codes, or those that share a word with `code`. */
function unknownCode(code: string): Error {
  const words = code.toLowerCase().split('-');
  const alike = rows.filter((row) => row.code.split('-').some((word) => words.includes(word)));
  const hint =
    alike.length > 0 ? `did you mean ${alike.map((row) => row.code).join(', ')}?` : 'wasmquant explain lists all codes';
  return usageError(`there is no code "${code}"`, hint);
}

export async function explain({ terminal }: Context, [code]: [string?]): Promise<Outcome> {
  const { out: colors, columns } = terminal;
  if (code === undefined) {
    const lines = table<Row>(
      rows,
      [
        { title: 'code', cell: (row) => row.code, paint: () => colors.bold },
        { title: 'severity', cell: (row) => row.severities },
        { title: 'what it means', cell: (row) => row.meaning, prose: true },
      ],
      { colors, columns },
    );
    return { document: { codes: rows }, lines };
  }
  const row = rows.find((known) => known.code === code);
  if (!row) throw unknownCode(code);
  return {
    document: row,
    lines: [`${colors.bold(row.code)}  ${colors.dim(row.severities)}`, row.meaning, `What to do: ${row.advice}`],
  };
}
