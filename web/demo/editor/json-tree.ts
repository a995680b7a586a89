// Positions in JSON text: the path of a syntax tree node, and the range of a JSON pointer.
import { syntaxTree } from '@codemirror/language';
import type { EditorState } from '@codemirror/state';
import type { SyntaxNode } from '@lezer/common';
import { anyItem, type Path } from './schema-walk';

function parsed(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.replaceAll('"', '');
  }
}

function nameOf(state: EditorState, property: SyntaxNode): string | null {
  const name = property.getChild('PropertyName');
  return name && parsed(state.sliceDoc(name.from, name.to));
}

/** The object or array around a position. */
export function containerAt(state: EditorState, position: number): SyntaxNode | null {
  let node: SyntaxNode | null = syntaxTree(state).resolveInner(position, -1);
  while (node && !((node.name === 'Object' || node.name === 'Array') && node.from < position)) node = node.parent;
  return node;
}

/** From the root to a container. */
export function pathOf(state: EditorState, container: SyntaxNode): Path {
  const path: Path = [];
  for (let node: SyntaxNode | null = container; node; node = node.parent) {
    const { parent }: SyntaxNode = node;
    if (parent?.name === 'Property') path.unshift(nameOf(state, parent) ?? '');
    else if (parent?.name === 'Array') path.unshift(anyItem);
  }
  return path;
}

export function keysOf(state: EditorState, object: SyntaxNode): string[] {
  return object.getChildren('Property').flatMap((property) => nameOf(state, property) ?? []);
}

const values = ['Object', 'Array', 'String', 'Number', 'True', 'False', 'Null'];
const valueNodes = (node: SyntaxNode) =>
  values.flatMap((name) => node.getChildren(name)).sort((a, b) => a.from - b.from);

/** The range of a JSON pointer's last property name or item, or of the nearest existing ancestor. */
export function rangeOf(state: EditorState, pointer: string): { from: number; to: number } {
  let node: SyntaxNode | null = valueNodes(syntaxTree(state).topNode)[0] ?? null;
  let range = { from: node?.from ?? 0, to: Math.min(state.doc.length, (node?.from ?? 0) + 1) };
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (node?.name === 'Array') {
      node = valueNodes(node)[Number(key)] ?? null;
      if (node) range = { from: node.from, to: node.to };
    } else {
      const property: SyntaxNode | undefined = node?.getChildren('Property').find((one) => nameOf(state, one) === key);
      const name = property?.getChild('PropertyName');
      node = (property && valueNodes(property).at(-1)) ?? null;
      if (name) range = { from: name.from, to: name.to };
    }
    if (!node) break;
  }
  return range;
}
