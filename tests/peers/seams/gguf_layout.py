"""GGUF, by gguf-py: values under the names of the Hugging Face folder that the file was made of."""
import glob
import re

import gguf
import numpy as np


def interleaved_rows(heads, rows):
    """The row of the folder for each row of q_proj and k_proj: llama.cpp rotates pairs that lie side by side."""
    half = rows // heads // 2
    return np.arange(rows).reshape(heads, 2, half).swapaxes(1, 2).reshape(-1)


def parts_of(path):
    """All files of a model in parts, of which `path` is the first."""
    return sorted(glob.glob(re.sub(r"-\d{5}-of-", "-?????-of-", path)))


def own_names(config, names):
    """The tensors' names in the file, by those in the folder."""
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    parts = {name: name.rpartition(".") for name in names}
    return {name: f"{table.get_name(stem)}.{suffix}" for name, (stem, _, suffix) in parts.items()}


def decode(path, config, names):
    tensors = {}
    for part in parts_of(path):
        for tensor in gguf.GGUFReader(part).tensors:
            if tensor.name in tensors:
                raise ValueError(f"{tensor.name} is in two parts")
            tensors[tensor.name] = tensor
    values, quantized = {}, set()
    for name, own in own_names(config, names).items():
        tensor = tensors.get(own)
        if tensor is None:
            continue
        kind = tensor.tensor_type
        data = gguf.quants.dequantize(tensor.data, kind).astype(np.float64)
        layer = name.rpartition(".")[0].rpartition(".")[2]
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(layer)
        if heads:
            folder = np.empty_like(data)
            folder[interleaved_rows(heads, data.shape[0])] = data
            data = folder
        values[name] = data
        if kind not in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16):
            quantized.add(name)
    return values, quantized
