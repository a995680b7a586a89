// Names of files and keys as a terminal and a page can show them.

const shortEscapes: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
/** Cc control, Cf format (bidi, zero width), Zl/Zp line separators, Cs lone surrogates. */
export const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** `text` with everything that affects a terminal shown as `\n`, `\x1b` or `\u{202e}`. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => {
    const point = character.codePointAt(0) ?? 0;
    const hex = point.toString(16);
    return shortEscapes[character] ?? (point <= 0xff ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`);
  });
}
