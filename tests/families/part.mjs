// A part of a list, for runs that take only some of many cases.
const millisecondsADay = 86_400_000;

/** `2/6`, or `date/6` for another each day, as [2, 6]. */
export function parsePart(text) {
  const [, number, of] = /^(\d+|date)\/(\d+)$/.exec(text) ?? [];
  const parts = Number(of);
  const part = number === 'date' ? Math.floor(Date.now() / millisecondsADay) % parts : Number(number);
  if (!(part < parts)) throw new Error(`--part ${text}: give a part and how many there are, such as 0/6 or date/6`);
  return [part, parts];
}

/** All of them, where `text` is undefined. */
export function inPart(list, text) {
  if (text === undefined) return list;
  const [part, parts] = parsePart(text);
  return list.filter((_, i) => i % parts === part);
}
