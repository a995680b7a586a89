"""GPTQ and AWQ: weights of a folder by the two packages' documented layouts."""
import re

import numpy as np

from words import AWQ_ORDER, dense_codes, dense_codes_down, ordered_nibbles


def bits_of(layer, config):
    """(bits, group size) of a layer by the config and its `dynamic` rules; None for a layer that is left out."""
    bits, size = config["bits"], config["group_size"]
    if config["quant_method"] == "gptq" and layer.endswith("lm_head") and not config.get("lm_head"):
        return None
    for pattern, rule in (config.get("dynamic") or {}).items():
        if re.match(pattern.removeprefix("+:").removeprefix("-:"), layer):
            if pattern.startswith("-:"):
                return None
            return rule.get("bits", bits), rule.get("group_size", size)
    if any(part in layer for part in config.get("modules_to_not_convert") or []):
        return None
    return bits, size


def decode_gptq(parts, bits, size, config):
    words, scales = parts["qweight"], np.asarray(parts["scales"], np.float64)
    columns, rows = words.shape[0] * 32 // bits, words.shape[1]
    codes = dense_codes_down(words, bits, columns)
    # Version 1 stores zero points less 1, field by field.
    step = 0 if config.get("checkpoint_format", "gptq") == "gptq_v2" else 1
    zeros = dense_codes(parts["qzeros"], bits, rows) + step
    size = columns if size < 1 else size
    groups = np.asarray(parts["g_idx"]) if "g_idx" in parts else np.arange(columns) // size
    if not config.get("desc_act") and not np.array_equal(groups, np.arange(columns) // size):
        raise ValueError("g_idx does not count groups, and desc_act is false")
    return ((codes - zeros[groups]) * scales[groups]).T


def decode_awq(parts, size):
    codes = ordered_nibbles(parts["qweight"], AWQ_ORDER)
    zeros = ordered_nibbles(parts["qzeros"], AWQ_ORDER)
    groups = np.arange(codes.shape[0]) // (codes.shape[0] if size < 1 else size)
    return ((codes - zeros[groups]) * np.asarray(parts["scales"], np.float64)[groups]).T


PARTS = ("qweight", "qzeros", "scales", "g_idx")


def decode(stored, config):
    values, quantized = {}, set()
    for name, tensor in stored.items():
        layer, _, part = name.rpartition(".")
        if part == "qweight":
            found = bits_of(layer, config)
            if found is None:
                raise ValueError(f"{layer} has words; config.json leaves it out")
            parts = {part: stored[f"{layer}.{part}"] for part in PARTS if f"{layer}.{part}" in stored}
            is_awq = config["quant_method"] == "awq"
            values[f"{layer}.weight"] = decode_awq(parts, found[1]) if is_awq else decode_gptq(parts, *found, config)
            quantized.add(f"{layer}.weight")
        elif part not in PARTS:
            values[name] = np.asarray(tensor, np.float64)
    return values, quantized


def is_linear_quantized(layer, config):
    return bits_of(layer, config) is not None
