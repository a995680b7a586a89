// The JSON editor: CodeMirror with schema completion and inline problems. It is in a shadow root, where CodeMirror's
// styles are constructed sheets: the page's policy blocks style elements.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { linter, lintKeymap, type Diagnostic as Mark } from '@codemirror/lint';
import { Compartment, EditorState, StateEffect } from '@codemirror/state';
import { EditorView, keymap, type ViewUpdate } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import type { Diagnostic } from 'wasmquant';
import { completeFrom } from './completion';
import { rangeOf } from './json-tree';
import type { Schema } from './schema-walk';

const theme = EditorView.theme({
  '&': { border: '1px solid var(--line-strong)', borderRadius: '6px', fontSize: '13px', maxHeight: '420px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-content': { caretColor: 'var(--text)', padding: '8px 4px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)' },
  '.cm-tooltip': { border: '1px solid var(--line-strong)', background: 'var(--surface)', color: 'var(--text)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    background: 'var(--accent)',
    color: 'var(--on-accent)',
  },
  '.cm-panels': { background: 'var(--sunken)', color: 'var(--text)' },
  '.cm-diagnostic': { borderLeftWidth: '4px', fontFamily: 'var(--sans)', whiteSpace: 'pre-wrap' },
});

const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.propertyName, color: 'var(--accent)' },
    { tag: tags.string, color: 'var(--on-warning-soft)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'var(--on-error-soft)' },
  ]),
);

export interface EditorOptions {
  /** Gets a shadow root. */
  host: HTMLElement;
  label: string;
  text: string;
  schema: Schema;
  /** Problems of JSON text that can be parsed, with JSON pointers. */
  check(text: string): Diagnostic[];
  onInput(text: string): void;
}

export interface Editor {
  /** Replaces the text if it differs. */
  setText(text: string): void;
  setDisabled(disabled: boolean): void;
  setSchema(schema: Schema): void;
  /** Checks again: problems can change without the text. */
  recheck(): void;
  destroy(): void;
}

const recheck = StateEffect.define<null>();
const needsRefresh = ({ transactions }: ViewUpdate) =>
  transactions.some(({ effects }) => effects.some((effect) => effect.is(recheck)));

const severities = { error: 'error', warning: 'warning', note: 'info' } as const;

function problems({ check }: EditorOptions, view: EditorView): Mark[] {
  const syntax = jsonParseLinter()(view);
  if (syntax.length > 0 || view.state.doc.length === 0) return syntax;
  return check(view.state.doc.toString())
    .filter(({ where }) => where === '' || where.startsWith('/'))
    .map(({ severity, message, hint, where }) => ({
      ...rangeOf(view.state, where),
      severity: severities[severity],
      message: hint ? `${message}\n→ ${hint}` : message,
    }));
}

export function createEditor(options: EditorOptions): Editor {
  const { host, label, text, schema, onInput } = options;
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const [completion, access] = [new Compartment(), new Compartment()];
  const complete = (by: Schema) => autocompletion({ override: [completeFrom(by)], icons: false });
  const accessOf = (disabled: boolean) => [EditorState.readOnly.of(disabled), EditorView.editable.of(!disabled)];
  let isOwnChange = false;
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        json(),
        history(),
        bracketMatching(),
        closeBrackets(),
        completion.of(complete(schema)),
        access.of(accessOf(false)),
        linter((current) => problems(options, current), { delay: 300, needsRefresh }),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !isOwnChange) onInput(update.state.doc.toString());
        }),
        theme,
        colours,
      ],
    }),
  });
  return {
    setText(next) {
      if (next === view.state.doc.toString()) return;
      isOwnChange = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
      isOwnChange = false;
    },
    setDisabled: (disabled) => view.dispatch({ effects: access.reconfigure(accessOf(disabled)) }),
    setSchema: (next) => view.dispatch({ effects: completion.reconfigure(complete(next)) }),
    recheck: () => view.dispatch({ effects: recheck.of(null) }),
    destroy: () => view.destroy(),
  };
}
