"""compressed-tensors: weights of a folder by what its config and the layouts' documentation say."""
import re

import numpy as np

from words import dense_codes, dense_codes_down, fp4, nibbles, power_of_two


def names(pattern, layer):
    return re.match(pattern[3:], layer) is not None if pattern.startswith("re:") else pattern == layer


def scheme_of(layer, block):
    """The group for a layer and its format, as the loader finds it; None when the layer is ignored or in no group."""
    if any(names(pattern, layer) for pattern in block.get("ignore", [])):
        return None
    groups = list(block["config_groups"].values())
    for group in groups:
        if any(names(target, layer) for target in group["targets"]):
            return group["weights"], group.get("format") or block["format"]
    for group in groups:
        if "Linear" in group["targets"]:
            return group["weights"], group.get("format") or block["format"]
    return None


def spread(scale, shape, weights, order):
    """A number for each value of the weight."""
    rows, columns = shape
    strategy = weights["strategy"]
    scale = np.asarray(scale, np.float64)
    if strategy == "tensor":
        return np.full(shape, scale.reshape(-1)[0])
    if strategy == "channel":
        return np.broadcast_to(scale.reshape(rows, 1), shape)
    if strategy == "block":
        high, wide = weights["block_structure"]
        expected = (-(-rows // high), -(-columns // wide))
        if scale.shape != expected:
            raise ValueError(f"scales have shape {scale.shape}, blocks of {high} x {wide} in {shape} need {expected}")
        return np.repeat(np.repeat(scale, high, 0), wide, 1)[:rows, :columns]
    size = weights["group_size"]
    if not size or size < 1:
        raise ValueError(f"group_size is {size}, strategy {strategy}")
    if scale.shape != (rows, -(-columns // size)):
        raise ValueError(f"scales have shape {scale.shape}, groups of {size} in {shape} need {(rows, -(-columns // size))}")
    groups = np.arange(columns) // size if order is None else np.asarray(order)
    return scale[:, groups]


def decode_layer(parts, weights, layout):
    scale = parts["weight_scale"]
    order = parts.get("weight_g_idx")
    if layout == "pack-quantized":
        bits = weights["num_bits"]
        shape = tuple(int(size) for size in parts["weight_shape"])
        codes = dense_codes(parts["weight_packed"], bits, shape[1]) - (1 << (bits - 1))
        zero = 0
        if "weight_zero_point" in parts:
            zeros = dense_codes_down(parts["weight_zero_point"], bits, shape[0]) - (1 << (bits - 1))
            zero = spread(zeros, shape, weights, order)
        return (codes - zero) * spread(scale, shape, weights, order)
    if layout in ("int-quantized", "naive-quantized", "float-quantized"):
        codes = parts["weight"].astype(np.float64)
        zero = spread(parts["weight_zero_point"], codes.shape, weights, order) if "weight_zero_point" in parts else 0
        return (codes - zero) * spread(scale, codes.shape, weights, order)
    if layout == "mxfp8-quantized":
        codes = parts["weight"].astype(np.float64)
        return codes * spread(power_of_two(scale), codes.shape, weights, order)
    if layout in ("mxfp4-pack-quantized", "nvfp4-pack-quantized"):
        codes = fp4(nibbles(parts["weight_packed"]).astype(np.int64))
        factors = power_of_two(scale) if layout.startswith("mx") else scale.astype(np.float64) / float(parts["weight_global_scale"].reshape(-1)[0])
        return codes * spread(factors, codes.shape, weights, order)
    raise ValueError(f"layout {layout}")


PARTS = ("weight", "weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx", "weight_global_scale")


def decode(stored, block):
    """Values by weight name, and names of the weights that are quantized."""
    values, quantized = {}, set()
    for name in stored:
        layer, _, part = name.rpartition(".")
        if part == "weight_scale":
            scheme = scheme_of(layer, block)
            if scheme is None:
                raise ValueError(f"{layer} has a scale; config.json quantizes it nowhere")
            parts = {part: stored[f"{layer}.{part}"] for part in PARTS if f"{layer}.{part}" in stored}
            values[f"{layer}.weight"] = decode_layer(parts, *scheme)
            quantized.add(f"{layer}.weight")
        elif part not in PARTS[1:]:
            if f"{name}_scale" not in stored:
                values[name] = np.asarray(stored[name], np.float64)
    return values, quantized


def is_linear_quantized(layer, block):
    """Whether the loader gives a linear layer of this name quantized weights."""
    return scheme_of(layer, block) is not None
