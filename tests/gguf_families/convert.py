#!/usr/bin/env python3
"""Tiny checkpoints of model families as GGUF files by llama.cpp's own converter, in the Python of Debian's llama.cpp-tools.

    python3 convert.py OUT TYPES FAMILY...     TYPES: of f32,f16,bf16; FAMILY:mmproj is the file for images

OUT/<family>/ is the checkpoint (tests/families/make_families.py), OUT/<family>.<type>.theirs.gguf or OUT/<family>.mmproj.<type>.theirs.gguf the converter's file. A tokenizer that the
converter cannot read is left out (no_vocab). Prints a line a family.
The converter recognizes tokenizers by a hash of the ids that a text of theirs gets, so a tiny vocabulary has no name there.
"""
import itertools
import json
import os
import re
import sys
import traceback
import types

sys.path.insert(0, "/usr/share/llama.cpp/llama.cpp-tools")
# What the converter asks of it, by the protocol buffers that transformers has.
sentencepiece = types.ModuleType("sentencepiece")
os.environ.update(NO_LOCAL_GGUF="1", TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")


class SentencePieceProcessor:
    """Pieces of a file as they are in it."""

    def LoadFromFile(self, path):
        model = sentencepiece.sentencepiece_model_pb2.ModelProto()
        with open(path, "rb") as file:
            model.ParseFromString(file.read())
        self.pieces = model.pieces
        self.kinds = model.SentencePiece.Type

    def vocab_size(self):
        return len(self.pieces)

    def IdToPiece(self, token):
        return self.pieces[token].piece

    def GetScore(self, token):
        return self.pieces[token].score

    def IsUnknown(self, token):
        return self.pieces[token].type == self.kinds.UNKNOWN

    def IsControl(self, token):
        return self.pieces[token].type == self.kinds.CONTROL

    def IsUnused(self, token):
        return self.pieces[token].type == self.kinds.UNUSED

    def IsByte(self, token):
        return self.pieces[token].type == self.kinds.BYTE


def convert(folder, out, file_type):
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class

    config = ModelBase.load_hparams(folder, False)
    model = get_model_class(get_model_architecture(config, ModelType.TEXT))
    # transformers leaves out old names of keys, for which the converter asks.
    old = {key: value for key, value in json.loads((folder / "config.json").read_text()).items() if key not in config}
    made = model(folder, file_type, out, model_name="tiny", **({"hparams": old | config} if old else {}))
    result = {}
    set_vocabulary = made.set_vocab

    def without_failing():
        before = dict(made.gguf_writer.kv_data[0])
        try:
            set_vocabulary()
        except Exception as error:  # of a tokenizer that a tiny checkpoint lacks
            result["vocabulary"] = f"{type(error).__name__}: {str(error)[:200]}"
            made.gguf_writer.kv_data[0] = before
            made.gguf_writer.add_tokenizer_model("no_vocab")
            made.gguf_writer.add_vocab_size(made.hparams["vocab_size"])

    made.set_vocab = without_failing
    if hasattr(made, "impl"):  # a class that asks another one
        made = made.impl
        set_vocabulary = made.set_vocab
        made.set_vocab = without_failing
    made.write()
    return result


def convert_projector(folder, out, file_type):
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class

    config = ModelBase.load_hparams(folder, False)
    model = get_model_class(get_model_architecture(config, ModelType.MMPROJ), mmproj=True)

    class Published(model):
        """Of towers whose names are those of published checkpoints, which transformers 5 shortens."""

        @classmethod
        def filter_tensors(cls, item):
            name, load = item
            name = re.sub(r"vision_tower\.(?=embeddings|encoder|post_layernorm)", "vision_tower.vision_model.", name)
            return super().filter_tensors((name, load))

    Published(folder, file_type, out, model_name="tiny").write()
    return {}


def main():
    from pathlib import Path

    import gguf
    import torch
    from conversion import ModelBase, TextModel

    from transformers.utils import sentencepiece_model_pb2_new

    sentencepiece.SentencePieceProcessor = SentencePieceProcessor
    sentencepiece.sentencepiece_model_pb2 = sentencepiece_model_pb2_new
    sys.modules["sentencepiece"] = sentencepiece  # transformers would find it
    out, type_names, *names = sys.argv[1:]
    file_types = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16}
    TextModel.get_vocab_base_pre = lambda self, tokenizer: "default"
    ModelBase.no_mtp = True  # layers that predict more tokens, which transformers does not write
    for name, type_name in itertools.product(names, type_names.split(",")):
        checkpoint, _, kind = name.partition(":")
        folder, file = Path(out, checkpoint), Path(out, ".".join(filter(None, [checkpoint, kind, type_name, "theirs.gguf"])))
        file.unlink(missing_ok=True)
        try:
            with torch.inference_mode():
                result = (convert_projector if kind else convert)(folder, file, file_types[type_name])
        except Exception as error:  # of the converter: a family that it does not know, or a checkpoint that it refuses
            last = traceback.extract_tb(error.__traceback__)[-1]
            result = {"error": re.sub(r"\s+", " ", f"{type(error).__name__}: {str(error)[:200]} ({os.path.basename(last.filename)}:{last.lineno})")}
        print(f"{name:24} {result.get('error') or result.get('vocabulary') or 'converted'}", flush=True)


if __name__ == "__main__":
    main()
