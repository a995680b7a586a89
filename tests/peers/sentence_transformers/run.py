"""Folders of sentence-transformers: makes float models, and encodes with them and with what was written of them.

    run.py make FOLDER            a folder for each family: encoder, pooling, dense module, normalization
    run.py encode FOLDER PATH...  {"path", "way", "cosine"} or {"path", "way", "error"} a line, against the float model in FOLDER
"""
import json
import os
import sys

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (BertConfig, BertModel, CompressedTensorsConfig, DistilBertConfig, DistilBertModel, PreTrainedTokenizerFast, Qwen3Config,
                          Qwen3Model)

WORDS = "the a cat dog sat on mat tree ran under over big small red blue and then it was not here there house river".split()
TEXTS = ["the cat sat on the mat", "a big dog ran under the tree", "it was not here", "the red house and the blue river", "then the small cat ran"]
WIDTH, VOCABULARY = 128, 64


def encoders():
    shared = dict(vocab_size=VOCABULARY, max_position_embeddings=64)
    yield "bert", BertModel(BertConfig(hidden_size=WIDTH, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, **shared))
    yield "distilbert", DistilBertModel(DistilBertConfig(dim=WIDTH, hidden_dim=256, n_layers=2, n_heads=4, **shared))
    yield "qwen3", Qwen3Model(Qwen3Config(hidden_size=WIDTH, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                          head_dim=32, **shared))


def tokenizer():
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    made = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def make(folder):
    for name, encoder in encoders():
        torch.manual_seed(7)
        for parameter in encoder.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.1)
        source = os.path.join(folder, f"{name}-encoder")
        encoder.save_pretrained(source)
        tokenizer().save_pretrained(source)
        first = Transformer(source, max_seq_length=32)
        modules = [first, Pooling(WIDTH, pooling_mode="mean"), Dense(WIDTH, 64), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save_pretrained(os.path.join(folder, name))


def encoded(path, **options):
    return SentenceTransformer(path, device="cpu", model_kwargs=options).encode(TEXTS, convert_to_tensor=True, normalize_embeddings=True)


def encode(folder, paths):
    for path in paths:
        wanted = encoded(os.path.join(folder, os.path.basename(path).split("+")[0]))
        with open(os.path.join(path, "config.json"), encoding="utf-8") as file:
            is_packed = "quantization_config" in json.load(file)
        ways = {"plain": {}}
        if is_packed:
            ways["dequantize"] = {"quantization_config": CompressedTensorsConfig(dequantize=True)}
        for way, options in ways.items():
            try:
                cosine = torch.nn.functional.cosine_similarity(encoded(path, **options), wanted).min().item()
                print(json.dumps({"path": path, "way": way, "cosine": cosine}), file=answers)
            except Exception as error:
                print(json.dumps({"path": path, "way": way, "error": f"{type(error).__name__}: {error}"[:300]}), file=answers)


if __name__ == "__main__":
    command, folder, *paths = sys.argv[1:]
    make(folder) if command == "make" else encode(folder, paths)
