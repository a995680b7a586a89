// Symbol.dispose and Symbol.asyncDispose for hosts that lack them (Safari, Firefox before 141, early Node 20).
// Files whose classes have such members call this before the class. An existing symbol is never replaced; a missing one
// is defined on `Symbol`, because code compiled for `using` looks it up there.

export function defineDisposeSymbols(): void {
  for (const name of ['dispose', 'asyncDispose']) {
    if (!(name in Symbol)) Object.defineProperty(Symbol, name, { value: Symbol(`Symbol.${name}`) });
  }
}
