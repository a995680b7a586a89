"""A small tokenizer of the family's kind, so that a checkpoint is whole: byte-level BPE (on tests/files/tiny-llama), sentencepiece or WordPiece."""
import json
import os
import shutil

from rows.family_sizes import VOCAB

TOKENIZER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "files", "tiny-llama")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'-"
BY_FREQUENCY = "etaoinshrdlucmfwypvbgkqjxz"
MERGES = ["\u0120 t", "\u0120 a", "h e", "i n", "r e", "o n", "\u0120t he", "e r", "\u0120 s", "a t", "\u0120 w", "\u0120 o", "e n", "\u0120 c", "i t",
          "i s", "a n", "o r", "e s", "\u0120 b", "e d", "\u0120 f", "in g", "\u0120 p", "o u", "\u0120a n", "a l", "a r", "\u0120t o"]
UNIGRAM = ("t5", "mt5")
SENTENCEPIECE = ("gemma", "mistral", "ministral", "phi3", "phimoe", "paligemma", "ernie4_5")
WORDPIECE = ("bert", "distilbert", "electra", "mpnet", "nomic_bert")


def write_json(folder, name, content):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(content, file)


def write_sentencepiece(folder, unigram, dummy_prefix):
    """tokenizer.model of bytes and letters, as Gemma and Mistral have it; spiece.model as T5."""
    from transformers.utils import sentencepiece_model_pb2_new as pb2

    kinds = pb2.ModelProto.SentencePiece.Type
    if unigram:
        pieces = [("<pad>", 0, kinds.CONTROL), ("</s>", 0, kinds.CONTROL), ("<unk>", 0, kinds.UNKNOWN)]
    else:
        pieces = [("<unk>", 0, kinds.UNKNOWN), ("<s>", 0, kinds.CONTROL), ("</s>", 0, kinds.CONTROL)]
    pieces += [(f"<0x{byte:02X}>", 0, kinds.BYTE) for byte in range(256)]
    pieces += [(piece, -float(rank), kinds.NORMAL) for rank, piece in enumerate(["\u2581", *BY_FREQUENCY, "\u2581t"])]
    model = pb2.ModelProto()
    for piece, score, kind in pieces[:VOCAB]:
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type = 1 if unigram else 2
    model.trainer_spec.vocab_size = len(model.pieces)
    model.trainer_spec.byte_fallback = True
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = dummy_prefix
    with open(os.path.join(folder, "spiece.model" if unigram else "tokenizer.model"), "wb") as file:
        file.write(model.SerializeToString())


def write_byte_merges(folder):
    """tokenizer.json of characters, with bytes for the others, as Gemma 4 has it."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    words = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *BY_FREQUENCY[:22], "\u2581t", "he", "\u2581the"]
    visible = ["<|turn>", "<|channel>"]
    added = [dict(id=i, content=token, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
             for i, token in [*enumerate(special), *enumerate(visible, len(words))]]
    write_json(folder, "tokenizer.json", dict(
        version="1.0", truncation=None, padding=None, added_tokens=added, post_processor=None,
        normalizer=dict(type="Replace", pattern=dict(String=" "), content="\u2581"),
        pre_tokenizer=dict(type="Split", pattern=dict(String=" "), behavior="MergedWithPrevious", invert=False),
        decoder=dict(type="Sequence", decoders=[dict(type="Replace", pattern=dict(String="\u2581"), content=" "), dict(type="ByteFallback"),
                                                dict(type="Fuse")]),
        model=dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=True,
                   byte_fallback=True, ignore_merges=False, vocab={word: i for i, word in enumerate(words)},
                   merges=[["\u2581", "t"], ["h", "e"], ["\u2581t", "he"]])))
    write_json(folder, "tokenizer_config.json", dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<bos>", eos_token="<eos>", pad_token="<pad>",
                                                     unk_token="<unk>", extra_special_tokens=visible[:1]))


def write_wordpiece(folder):
    special = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    words = [*special, *LETTERS, *("##" + letter for letter in LETTERS), *(a + b for a in "thiaon" for b in LETTERS)][:VOCAB]
    added = [dict(id=i, content=token, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) for token, i in special.items()]
    sequence = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    pair = [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]
    write_json(folder, "tokenizer.json", dict(
        version="1.0", truncation=None, padding=None, added_tokens=added,
        normalizer=dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
        pre_tokenizer=dict(type="BertPreTokenizer"),
        post_processor=dict(type="TemplateProcessing", single=sequence, pair=pair,
                            special_tokens={token: dict(id=token, ids=[special[token]], tokens=[token]) for token in ("[CLS]", "[SEP]")}),
        decoder=dict(type="WordPiece", prefix="##", cleanup=True),
        model=dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100,
                   vocab={word: i for i, word in enumerate(words)})))
    write_json(folder, "tokenizer_config.json", dict(tokenizer_class="BertTokenizer", do_lower_case=True, cls_token="[CLS]", sep_token="[SEP]",
                                                     pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]"))
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")


def write_byte_level(folder, family):
    shutil.copyfile(os.path.join(TOKENIZER, "tokenizer_config.json"), os.path.join(folder, "tokenizer_config.json"))
    with open(os.path.join(TOKENIZER, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    if family.startswith("qwen"):  # transformers' class for it adds a token of this name
        names = {"<s>": "<|endoftext|>", "</s>": "<|im_end|>", "<pad>": "<|im_start|>"}
        for token in tokenizer["added_tokens"]:
            token["content"] = names[token["content"]]
        tokenizer["post_processor"] = None
        write_json(folder, "tokenizer_config.json", dict(tokenizer_class="Qwen2Tokenizer", eos_token="<|im_end|>", pad_token="<|endoftext|>", bos_token=None))
    model = tokenizer["model"]
    model["vocab"].update({token["content"]: token["id"] for token in tokenizer["added_tokens"]})
    tokenizer["pre_tokenizer"]["use_regex"] = True
    model["merges"] = MERGES
    model["vocab"].update({merge.replace(" ", ""): 259 + i for i, merge in enumerate(MERGES)})
    write_json(folder, "tokenizer.json", tokenizer)


def write_tokenizer(folder, family):
    if family.startswith("gemma4"):
        write_byte_merges(folder)
    elif family.startswith(UNIGRAM + SENTENCEPIECE):
        write_sentencepiece(folder, family.startswith(UNIGRAM), not family.startswith("gemma"))
    elif family.startswith(WORDPIECE):
        write_wordpiece(folder)
    else:
        write_byte_level(folder, family)
