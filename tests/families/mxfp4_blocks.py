"""Checkpoints of experts in MXFP4 as values: transformers' loader of the blocks needs packages that its decoder does not."""
import json
import os

import safetensors.torch
import torch
from transformers.integrations import mxfp4


def decode_blocks(folder):
    """The folder of the same checkpoint with experts as values; the folder itself if it has no blocks."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    if config.pop("quantization_config", {}).get("quant_method") != "mxfp4":
        return folder
    plain = folder + ".plain"
    os.makedirs(plain, exist_ok=True)
    tensors = safetensors.torch.load_file(os.path.join(folder, "model.safetensors"))
    for blocks in [name for name in tensors if name.endswith("_blocks")]:
        name = blocks.removesuffix("_blocks")
        tensors[name] = mxfp4.convert_moe_packed_tensors(tensors.pop(blocks), tensors.pop(name + "_scales"), dtype=torch.float32).contiguous()
    safetensors.torch.save_file(tensors, os.path.join(plain, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(plain, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return plain
