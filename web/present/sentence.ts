// Errors as sentences: what the library says follows the place that it says it of.

/** Words that a detail begins with when the place is its subject. */
const predicate =
  /^(is|are|was|were|has|have|had|begins|ends|names|needs|cannot|can|does|did|stores|contains|matches|keeps|appears|must|will|may|reads|holds|lists|gives|belongs|lies|comes|takes|occurs|expects|describes|stands|would|could|asks|lacks|differs|contradicts|covers|rotates)\b/;

/** Names of files and keys, and addresses, stay as they are written. */
export const capital = (text: string) =>
  /^\S*[._:/]\S/.test(text) ? text : text.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());

/** A detail with the place in front where that is its subject: a clause that stands by itself. */
export const withSubject = (where: string | null | undefined, detail: string) =>
  where && predicate.test(detail) ? `${where} ${detail}` : detail;

/** `config.json is missing.` of `is missing` at `config.json`; `The file has 0 bytes.` of `the file has 0 bytes`. */
export function sentenceOf(where: string | null | undefined, detail: string): string {
  const clause = withSubject(where, detail);
  const begun = clause === detail ? capital(detail) : clause;
  return /[.!?)”"]$/.test(begun) ? begun : `${begun}.`;
}

const advice =
  /[.;:,)] (and )?(add|check|choose|convert|download|enter|exclude|export|fix|get|give|load|make|merge|name|open|pass|put|raise|remove|rename|replace|run|save|see|set|take|unpack|use|write)\b/i;

/** Whether a detail says what to do, and not only what was found. */
export const saysWhatToDo = (detail: string) => advice.test(detail);
