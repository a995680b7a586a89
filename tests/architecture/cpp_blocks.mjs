// Where functions, classes and enums of a C++ text begin and end, by its braces. Good for counting lines and members, no parser.

/** The text with comments, literals and preprocessor lines blank, line for line. */
export function codeOf(text) {
  const blank = (part) => part.replace(/[^\n]/g, ' ');
  return text
    .replace(
      /R"(\w*)\([\s\S]*?\)\1"|"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|(?<![\w])'(?:[^'\\\n]|\\.)+'/g,
      (part) => (part.startsWith('/') ? blank(part) : `"${blank(part.slice(1, -1))}"`),
    )
    .replace(/^[ \t]*#(?:[^\n]*\\\n)*[^\n]*/gm, blank);
}

/** The text without comments; names in literals and includes stay. */
export function withoutComments(text) {
  return text.replace(/R"(\w*)\([\s\S]*?\)\1"|"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (part) =>
    part.startsWith('/') ? '' : part,
  );
}

function kindOf(head, outer) {
  if (/\bnamespace\b/.test(head)) return 'namespace';
  if (/\benum\b/.test(head)) return 'enum';
  if (/\b(class|struct|union)\s+(?:alignas\([^)]*\)\s*)?\w+[^()=]*$/.test(head)) return 'class';
  const inside = outer === undefined || outer === 'namespace' || outer === 'class';
  return inside && /\)[^=]*$/.test(head) && !/=\s*$/.test(head) ? 'function' : 'block';
}

const nameOf = (kind, head) =>
  (kind === 'class' ? /\b(?:class|struct|union)\s+(?:alignas\([^)]*\)\s*)?(\w+)/ : /([\w:~]+)\s*\(/).exec(head)?.[1] ??
  '';

/** [{kind, name, first, last, members}]: lines count from 1; `members` are the data members of a class. */
export function blocksOf(text) {
  const code = codeOf(text);
  const open = [];
  const blocks = [];
  let line = 1;
  let head = '';
  let headLine = 1;
  for (const c of code) {
    if (c === '\n') line++;
    if (c === '{') {
      const kind = kindOf(head, open.at(-1)?.kind);
      open.push({ kind, name: nameOf(kind, head), first: headLine, members: 0, head });
      head = '';
    } else if (c === '}') {
      const block = open.pop();
      if (block) {
        blocks.push({ ...block, last: line });
        // `int a{1};` is one statement with its braces.
        head = block.kind === 'block' ? `${block.head}{}` : '';
      }
    } else if (c === ';') {
      const outer = open.at(-1);
      if (outer?.kind === 'class' && isMember(head))
        outer.members += head.replace(/[(<{][^;]*?[)>}]/g, '').split(',').length;
      head = '';
    } else {
      if (head.trim() === '' && c.trim() !== '') headLine = line;
      head += c;
    }
  }
  return blocks;
}

/** Whether a statement of a class declares data. */
function isMember(statement) {
  const text = statement.replace(/^\s*(public|private|protected)\s*:/, '').trim();
  if (text === '' || /^(using|friend|static|typedef|class|struct|enum|template|explicit|virtual)\b/.test(text))
    return false;
  return !text
    .replace(/=.*$|\{.*$/s, '')
    .replace(/<[^;]*>/g, '')
    .includes('(');
}
