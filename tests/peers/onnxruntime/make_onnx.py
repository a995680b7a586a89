"""Writes a checkpoint as a float32 ONNX model: `python make_onnx.py FOLDER ONNX_FOLDER`.

Decoders by the builder of onnxruntime-genai, which adds genai_config.json; encoders by torch.onnx.
"""
import json
import os
import sys

import onnxruntime_genai.models as _builders

# The builder imports its parts as modules of their own.
sys.path.insert(0, os.path.dirname(_builders.__file__))


def build(folder, target, precision="fp32"):
    """A decoder, by onnxruntime-genai's builder; `precision` int4 for checkpoints that are quantized already, but for their head."""
    from builder import create_model, parse_extra_options

    names = ("", folder, target, precision, "cpu", os.path.join(target, "cache"))
    create_model(*names, **parse_extra_options(*names, ["hf_token=false", "accuracy_level=1", "nodes_to_exclude=/lm_head/MatMul"]))


def export(folder, target):
    """An encoder, with free lengths."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    model.config.return_dict = False
    ids = torch.ones((2, 9), dtype=torch.int64)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    os.makedirs(target)
    torch.onnx.export(model, (ids, torch.ones_like(ids)), os.path.join(target, "model.onnx"), dynamo=True, external_data=False,
                      input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"], dynamic_shapes=(axes, axes))


if __name__ == "__main__":
    source, output = sys.argv[1:]
    with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
        is_encoder = json.load(file)["model_type"] == "bert"
    (export if is_encoder else build)(source, output)
