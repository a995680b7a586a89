/** The index of the first word in which two texts differ, or -1 if they are equal. */
export function firstDifference(left: string, right: string): number {
  const [a, b] = [left, right].map((text) => text.split(/\s+/).filter(Boolean)) as [string[], string[]];
  const most = Math.max(a.length, b.length);
  for (let i = 0; i < most; ++i) if (a[i] !== b[i]) return i;
  return -1;
}
