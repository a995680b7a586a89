// Completion from a JSON Schema: keys that an object can still get, and values that a key can have.
import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { containerAt, keysOf, pathOf } from './json-tree';
import { anyItem, keysAt, type Path, type Schema, valuesAt } from './schema-walk';

/** The part of a key or value typed so far, with its opening quote. */
const typed = /"[^"\n]*$|[\w.-]*$/;
const keyBefore = /"((?:[^"\\\n]|\\.)*)"\s*:\s*$/;

export function completeFrom(schema: Schema) {
  return ({ state, pos, explicit }: CompletionContext): CompletionResult | null => {
    const line = state.doc.lineAt(pos);
    const word = typed.exec(line.text.slice(0, pos - line.from))?.[0] ?? '';
    if (word === '' && !explicit) return null;
    const from = pos - word.length;
    const container = containerAt(state, from);
    if (!container) return null;
    const path = pathOf(state, container);
    const before = state.sliceDoc(container.from, from);
    // An automatically closed quote is replaced, too.
    const to = word.startsWith('"') && state.sliceDoc(pos, pos + 1) === '"' ? pos + 1 : pos;
    const key = keyBefore.exec(before)?.[1];
    if (container.name === 'Object' && key === undefined) {
      const present = keysOf(state, container);
      const isNamed = /^\s*:/.test(state.sliceDoc(to, to + 20));
      const options = keysAt(schema, path)
        .filter((name) => !present.includes(name))
        .map((name) => ({ label: `"${name}"`, apply: isNamed ? `"${name}"` : `"${name}": `, type: 'property' }));
      return { from, to, options, validFor: /^"?[\w.-]*"?$/ };
    }
    const place: Path = container.name === 'Array' ? [...path, anyItem] : [...path, key ?? ''];
    const options = valuesAt(schema, place).map((label) => ({ label, type: 'enum' }));
    return { from, to, options, validFor: /^"?[\w.-]*"?$/ };
  };
}
