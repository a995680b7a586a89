// Code blocks of a Markdown file. A comment just before a block says what the reader has already: `<!-- given: model -->`
// names what given.mjs sets up; `<!-- unrun: why -->` leaves a block out and says why; "Saved as `name`:" is the file that
// the reader makes of it; `<!-- peer: NAME -->` that the environment of tests/peers/NAME runs it; `<!-- tool: NAME -->` that
// llama_tools.mjs runs its other lines, too; `<!-- refused: text -->` that the
// command fails and says that text; `<!-- example: FILE -->` that these lines are in web/examples/FILE, which a test runs.

/** `[{ language, code, line, given, unrun, peer, tool, refused, example, saved, note }]`, lines from 1; `note` is the line of text before the block. */
export function fencesOf(markdown) {
  const fences = [];
  const lines = markdown.split('\n');
  let note = '';
  for (let at = 0; at < lines.length; ++at) {
    const open = /^```(\w*)$/.exec(lines[at]);
    if (!open) {
      if (lines[at].trim() !== '') note = lines[at];
      continue;
    }
    const begin = at + 1;
    while (++at < lines.length && lines[at] !== '```');
    const given = /^<!-- given: (.*) -->$/.exec(note)?.[1].split(', ') ?? [];
    const [unrun, peer, tool, refused, example] = ['unrun', 'peer', 'tool', 'refused', 'example'].map(
      (word) => new RegExp(`^<!-- ${word}: (.*) -->$`).exec(note)?.[1] ?? null,
    );
    const saved = /Saved as `([\w.-]+)`:$/.exec(note)?.[1] ?? null;
    const code = lines.slice(begin, at).join('\n');
    fences.push({ language: open[1], code, line: begin, given, unrun, peer, tool, refused, example, saved, note });
    note = '';
  }
  return fences;
}
