// Names of files and keys as a terminal and a page can show them.

const shortEscapes: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
/** Nothing but ASCII, Latin letters, usual punctuation, arrows and signs: most texts, found without the tables of Unicode, whose first use
 * takes 10 ms. */
const plain = /^[ -~\u00a1-\u00ac\u00ae-\u024f\u2010-\u2027\u2190-\u22ff]*$/;

/** `text` with what `shownAs` gives for everything that affects a terminal: Cc control, Cf format (bidi, zero width), Zl/Zp line separators, Cs lone
 * surrogates. */
export function escapedBy(text: string, shownAs: (character: string) => string): string {
  return plain.test(text) ? text : text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, shownAs);
}

/** `text` with everything that affects a terminal shown as `\n`, `\x1b` or `\u{202e}`. */
export function printable(text: string): string {
  return escapedBy(text, (character) => {
    const point = character.codePointAt(0) ?? 0;
    const hex = point.toString(16);
    return shortEscapes[character] ?? (point <= 0xff ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`);
  });
}
