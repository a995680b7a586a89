"""Decodes our AWQ and GPTQ folders without our code and compares them with what the library says they hold.

    python3 load_words.py CASE_FOLDER...

A case folder holds `quantized/` and `dequantized.safetensors` (float32 values of the quantized weights, by the library).
AWQ goes through the AutoAWQ converter of compressed-tensors. GPTQ has no independent reader among the peers: it is decoded
here as AutoGPTQ's own dequantization has it, (code - (zero + 1)) * scale[g_idx], in version 2 without the 1. Prints one JSON line a case.
"""
import json
import os
import re
import sys

import torch
from compressed_tensors.entrypoints.convert.converters.autoawq import AutoAWQConverter
from safetensors.torch import load_file


def awq(tensors, layer, config):
    converter = AutoAWQConverter.from_autoawq_config(config)
    codes, scales, zeros = converter._convert_gemm_module(
        tensors[f"{layer}.qweight"], tensors[f"{layer}.scales"], tensors[f"{layer}.qzeros"])
    group = config["group_size"]
    spread = lambda x: x.repeat_interleave(group, dim=1).float()
    return (codes.float() - spread(zeros)) * spread(scales)


def fields(words, bits):
    """Bit streams down the columns of [n, columns] words, as [n * 32 / bits, columns] numbers."""
    single = (words.unsqueeze(1) >> torch.arange(32, dtype=torch.int32).view(1, -1, 1)) & 1
    weights = (1 << torch.arange(bits, dtype=torch.int32)).view(1, -1, 1)
    return (single.reshape(-1, bits, words.shape[1]) * weights).sum(1)


def gptq(tensors, layer, config):
    qweight, qzeros = tensors[f"{layer}.qweight"], tensors[f"{layer}.qzeros"]
    scales, groups = tensors[f"{layer}.scales"], tensors[f"{layer}.g_idx"].long()
    bits = config["bits"]
    for pattern, own in config.get("dynamic", {}).items():
        if pattern.startswith("+:") and re.match(pattern[2:], layer):
            bits = own.get("bits", bits)
    codes, zeros = fields(qweight, bits), fields(qzeros.T, bits).T
    zeros = zeros + {"gptq": 1, "gptq_v2": 0}[config["checkpoint_format"]]
    return ((codes - zeros[groups]).float() * scales[groups].float()).T


for folder in sys.argv[1:]:
    outcome = {"case": os.path.basename(folder)}
    try:
        with open(os.path.join(folder, "quantized", "config.json"), encoding="utf-8") as file:
            config = json.load(file)["quantization_config"]
        tensors = load_file(os.path.join(folder, "quantized", "model.safetensors"))
        expected = load_file(os.path.join(folder, "dequantized.safetensors"))
        decode = {"awq": awq, "gptq": gptq}[config["quant_method"]]
        differing = [name for name, weight in expected.items()
                     if not torch.equal(decode(tensors, name.removesuffix(".weight"), config), weight)]
        outcome |= {"weights": len(expected), "differing": differing,
                    "words": sum(name.endswith(".qweight") for name in tensors)}
    except Exception as error:  # a case that fails is a result
        outcome["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(outcome), flush=True)
