"""GGUF, by gguf-py: values under the names of the Hugging Face folder that the file was made of."""
import gguf
import numpy as np


def interleaved_rows(heads, rows):
    """The row of the folder for each row of q_proj and k_proj: llama.cpp rotates pairs that lie side by side."""
    half = rows // heads // 2
    return np.arange(rows).reshape(heads, 2, half).swapaxes(1, 2).reshape(-1)


def decode(path, config, names):
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    layers = config["num_hidden_layers"]
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)
    values, quantized = {}, set()
    for name in names:
        stem, _, suffix = name.rpartition(".")
        tensor = tensors.get(f"{table.get_name(stem)}.{suffix}")
        if tensor is None:
            continue
        kind = tensor.tensor_type
        data = gguf.quants.dequantize(tensor.data, kind).astype(np.float64)
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(stem.rpartition(".")[2])
        if heads:
            folder = np.empty_like(data)
            folder[interleaved_rows(heads, data.shape[0])] = data
            data = folder
        values[name] = data
        if kind not in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16):
            quantized.add(name)
    return values, quantized
