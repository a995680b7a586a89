// tokenizer.json and tokenizer_config.json of the tokenizer in a GGUF file, so that code that reads those files can use it: byte-level BPE
// (`gpt2`), BPE of SentencePiece (`llama`) and WordPiece (`bert`). Others have none.

/** What a file says. */
export interface GgufTokenizer {
  /** Single values, by key. */
  metadata: Readonly<Record<string, string>>;
  array(key: string): unknown[];
  /** The pre_tokenizer that tokenizer.ggml.pre names, or null. */
  pretokenizer(name: string): object | null;
}

/** Numbers of tokenizer.ggml.token_type. */
const types = { unknown: 2, control: 3, userDefined: 4, byte: 6 };
const wordStart = '\u2581';

/** Names of pre-tokenizers with which whole words that are tokens stay whole, with any merges. */
const ignoresMerges = /^(llama3|llama-v3|llama-bpe|falcon3|falcon-h1|pixtral|midm-2\.0|lfm2|tekken)$/;

class Vocabulary {
  readonly tokens: string[];
  readonly #types: number[];
  readonly #scores: number[];

  constructor(readonly from: GgufTokenizer) {
    this.tokens = from.array('tokenizer.ggml.tokens').map(String);
    this.#types = from.array('tokenizer.ggml.token_type').map(Number);
    this.#scores = from.array('tokenizer.ggml.scores').map(Number);
  }

  text(name: string): string | undefined {
    return this.from.metadata[`tokenizer.ggml.${name}`];
  }

  flag(name: string, usual: boolean): boolean {
    const value = this.text(name);
    return value === undefined ? usual : value === 'true';
  }

  /** A special token, such as `bos`. */
  special(name: string): string | undefined {
    const id = this.text(`${name}_token_id`);
    return id === undefined ? undefined : this.tokens[Number(id)];
  }

  is(id: number, ...kinds: (keyof typeof types)[]): boolean {
    return kinds.some((kind) => this.#types[id] === types[kind]);
  }

  score(id: number): number {
    return this.#scores[id] ?? 0;
  }

  ids(spelled: (token: string, id: number) => string = (token) => token): Record<string, number> {
    // Without prototype: a token may be `__proto__`.
    const ids: Record<string, number> = Object.create(null);
    for (const [id, token] of this.tokens.entries()) ids[spelled(token, id)] ??= id;
    return ids;
  }

  added(): object[] {
    return this.tokens.flatMap((content, id) => {
      if (!this.is(id, 'unknown', 'control', 'userDefined')) return [];
      const special = !this.is(id, 'userDefined');
      return [{ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special }];
    });
  }

  /** Adds the tokens that stand before and behind a text. */
  template(begins: boolean, ends: boolean): object | null {
    const [first, last] = [begins ? this.special('bos') : undefined, ends ? this.special('eos') : undefined];
    if (first === undefined && last === undefined) return null;
    const token = (id: string | undefined) => (id === undefined ? [] : [{ SpecialToken: { id, type_id: 0 } }]);
    const sequence = { Sequence: { id: 'A', type_id: 0 } };
    const used = [first, last].filter((text) => text !== undefined);
    const known = (text: string) => [text, { id: text, ids: [this.tokens.indexOf(text)], tokens: [text] }];
    return {
      type: 'TemplateProcessing',
      single: [...token(first), sequence, ...token(last)],
      pair: [...token(first), sequence, ...token(last), { Sequence: { id: 'B', type_id: 1 } }],
      special_tokens: Object.fromEntries(used.map(known)),
    };
  }
}

type Parts = {
  normalizer: object | null;
  pre_tokenizer: object | null;
  model: object;
  decoder: object;
  begins: boolean;
};

function byteLevel(words: Vocabulary): Parts | null {
  const pre = words.text('pre') ?? 'default';
  const pretokenizer = words.from.pretokenizer(pre);
  if (!pretokenizer) return null;
  return {
    normalizer: null,
    pre_tokenizer: pretokenizer,
    model: {
      type: 'BPE',
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: ignoresMerges.test(pre),
      vocab: words.ids(),
      merges: words.from.array('tokenizer.ggml.merges'),
    },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    begins: ignoresMerges.test(pre) && pre !== 'tekken',
  };
}

/**
 * Merges that make the tokens in the order of their scores, which is the order in which SentencePiece joins pieces. Of the ways to make one token,
 * longer first parts come first, as transformers converts such vocabularies.
 */
function mergesOf(words: Vocabulary, ids: Record<string, number>): string[] {
  const isPiece = (text: string) => {
    const id = ids[text];
    return id !== undefined && !words.is(id, 'unknown', 'control', 'byte');
  };
  const made = words.tokens.flatMap((token, id) => {
    if (!isPiece(token) || ids[token] !== id) return [];
    const letters = [...token];
    return letters.slice(1).flatMap((_, i) => {
      const [left, right] = [letters.slice(0, i + 1).join(''), letters.slice(i + 1).join('')];
      return isPiece(left) && isPiece(right) ? [{ left, right, score: words.score(id), length: i }] : [];
    });
  });
  made.sort((a, b) => b.score - a.score || b.length - a.length);
  return made.map(({ left, right }) => `${left} ${right}`);
}

function sentencePiece(words: Vocabulary): Parts {
  const ids = words.ids();
  const prefix = words.flag('add_space_prefix', true);
  const replace = (from: string, content: string) => ({ type: 'Replace', pattern: { String: from }, content });
  return {
    normalizer: {
      type: 'Sequence',
      normalizers: [...(prefix ? [{ type: 'Prepend', prepend: wordStart }] : []), replace(' ', wordStart)],
    },
    pre_tokenizer: null,
    model: {
      type: 'BPE',
      unk_token: words.tokens.find((_, id) => words.is(id, 'unknown')) ?? null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab: ids,
      merges: mergesOf(words, ids),
    },
    decoder: {
      type: 'Sequence',
      decoders: [
        replace(wordStart, ' '),
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(prefix ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
      ],
    },
    begins: true,
  };
}

function wordPiece(words: Vocabulary): Parts {
  const prefix = '##';
  const spelled = (token: string, id: number) => {
    if (words.is(id, 'control', 'unknown')) return token;
    return token.startsWith(wordStart) ? token.slice(1) : `${prefix}${token}`;
  };
  return {
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: words.flag('normalizer.strip_accents', words.flag('normalizer.lowercase', true)),
      lowercase: words.flag('normalizer.lowercase', true),
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    model: {
      type: 'WordPiece',
      unk_token: words.special('unknown') ?? '[UNK]',
      continuing_subword_prefix: prefix,
      max_input_chars_per_word: 100,
      vocab: words.ids(spelled),
    },
    decoder: { type: 'WordPiece', prefix, cleanup: true },
    begins: true,
  };
}

/** Texts of the two files, or null if the file has no tokenizer of these kinds. */
export function tokenizerFilesOf(
  from: GgufTokenizer,
): { 'tokenizer.json': string; 'tokenizer_config.json': string } | null {
  const kind = from.metadata['tokenizer.ggml.model'] ?? '';
  const makers: Record<string, (words: Vocabulary) => Parts | null> = {
    gpt2: byteLevel,
    llama: sentencePiece,
    bert: wordPiece,
  };
  const words = new Vocabulary(from);
  const parts = words.tokens.length > 0 ? makers[kind]?.(words) : null;
  if (!parts) return null;
  const { begins, ...rest } = parts;
  const isEncoder = kind === 'bert';
  const names = ['bos', 'eos', 'pad', 'unk', 'cls', 'sep', 'mask'] as const;
  const spelling: Partial<Record<(typeof names)[number], string>> = {
    pad: 'padding',
    unk: 'unknown',
    cls: 'bos',
    sep: 'seperator', // ggml's spelling
  };
  const specials = names
    .filter((name) => isEncoder || (name !== 'cls' && name !== 'sep'))
    .map((name) => [`${name}_token`, words.special(spelling[name] ?? name) ?? null]);
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: words.added(),
    ...rest,
    post_processor: words.template(words.flag('add_bos_token', begins), words.flag('add_eos_token', isEncoder)),
  };
  const config = { ...Object.fromEntries(specials), clean_up_tokenization_spaces: false };
  return { 'tokenizer.json': JSON.stringify(tokenizer), 'tokenizer_config.json': JSON.stringify(config) };
}
