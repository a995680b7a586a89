"""What the weights of a checkpoint are, found without the model loader: compressed-tensors' own decoder tensor by tensor, and rounding to nearest by
compressed-tensors' own arithmetic."""
import glob
import json
import os
import re

import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.lifecycle.forward import fake_quantize
from compressed_tensors.quantization.utils.helpers import calculate_qparams
from safetensors.torch import load_file

# Names that the layouts give to the parts of one weight.
PARTS = ("weight", "weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx", "weight_global_scale")

# Names of an expert's matrices by the parameter that transformers makes of them.
HALVES = {"gate_up_proj": (("gate_proj", "up_proj"), ("w1", "w3")), "down_proj": (("down_proj",), ("w2",)), "up_proj": (("up_proj",),)}

ROUNDING = {
    "int8": dict(num_bits=8, type="int", strategy="channel"),
    "int4_wo_32": dict(num_bits=4, type="int", strategy="group", group_size=32),
    "fp8_per_channel": dict(num_bits=8, type="float", strategy="channel"),
    "mxfp4": dict(num_bits=4, type="float", strategy="group", group_size=32, scale_dtype=torch.uint8, zp_dtype=torch.uint8),
}
SIGNED = {"int4_wo_32"}  # scales may be negative


def read_config(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)


def read_tensors(folder):
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        tensors.update(load_file(path))
    return tensors


def scheme_of(layer, block):
    """The group whose targets name the layer, else the one for every Linear."""
    groups = list(block["config_groups"].values())

    def names(target):
        return re.match(target[3:], layer) if target.startswith("re:") else target == layer

    for group in (*(g for g in groups if any(map(names, g["targets"]))), *(g for g in groups if "Linear" in g["targets"])):
        return QuantizationScheme.model_validate(group), group.get("format") or block["format"]
    raise ValueError(f"no group of config.json is for the layer {layer}")


def block_of(folder):
    """quantization_config; nothing when no weight is quantized."""
    return read_config(folder).get("quantization_config") or {"format": None, "config_groups": {}}


def decode(folder, is_float32=lambda weight: False):
    """Tensors of a compressed-tensors folder, decoded: (all of them by name, names of the decoded ones). `is_float32`: weights that the loader decodes in
    float32, even where their scales have 16 bits."""
    block = block_of(folder)
    stored = read_tensors(folder)
    layers = [name.removesuffix("_scale") for name in stored if name.endswith(".weight_scale")]
    values, used = {}, set()
    for weight in layers:
        layer = weight.removesuffix(".weight")
        parts = {part: stored[f"{layer}.{part}"] for part in PARTS if f"{layer}.{part}" in stored}
        used.update(f"{layer}.{part}" for part in parts)
        if is_float32(weight):
            parts = {part: tensor.float() if part == "weight_scale" else tensor for part, tensor in parts.items()}
        scheme, layout = scheme_of(layer, block)
        values[weight] = BaseCompressor.get_value_from_registry(layout).decompress(parts, scheme)["weight"]
    return {**{name: tensor for name, tensor in stored.items() if name not in used}, **values}, set(layers)


def stack_experts(decoded, names, sources, is_input_major):
    """Experts that are one tensor in the source and a layer each in the file, stacked as they were. Same arguments and results as `decode`."""
    stacked, parts, quantized = {}, set(), set()
    for name in sources:
        module, _, kind = name.removesuffix(".weight").rpartition(".")
        if name in decoded or kind not in HALVES:
            continue
        halves = next(halves for halves in HALVES[kind] if f"{module}.0.{halves[0]}.weight" in decoded)
        layers = [[f"{module}.{expert}.{half}.weight" for half in halves] for expert in range(sources[name].shape[0])]
        stack = torch.stack([torch.cat([decoded[layer] for layer in expert]) for expert in layers])
        stacked[name] = stack.mT.contiguous() if is_input_major(name) else stack
        own = {layer for expert in layers for layer in expert}
        parts |= own
        quantized |= {name} if own & names else set()
    return {**{name: tensor for name, tensor in decoded.items() if name not in parts}, **stacked}, names - parts | quantized


def stored_scale_dtype(source):
    return source.dtype if source.dtype in (torch.float16, torch.bfloat16) else torch.float32


def round_to_nearest(weight, preset):
    """`weight` [..., out, in] rounded as the preset says: (values, step sizes of every value), float32. Scales are stored in the dtype of the weight."""
    args = QuantizationArgs(symmetric=True, **ROUNDING[preset])
    rows = weight.float().reshape(-1, weight.shape[-1])
    size = args.group_size or rows.shape[1]
    fits = rows.shape[1] % size == 0
    groups = rows.reshape(rows.shape[0], -1, size if fits else rows.shape[1])
    scale, zero_point = calculate_qparams(groups.amin(-1), groups.amax(-1), args)
    if preset in SIGNED:  # the value of largest magnitude is the lowest code
        lowest, highest = groups.amin(-1), groups.amax(-1)
        scale = torch.where(highest > -lowest, highest, lowest) / -(2 ** (args.num_bits - 1))
        scale = torch.where(scale == 0, torch.finfo(torch.float32).eps, scale)
    scale = scale.to(stored_scale_dtype(weight)).float()
    # Rows that are not a multiple of groups have one scale.
    applied = args if fits else args.model_copy(update={"group_size": rows.shape[1]})
    values = fake_quantize(rows, scale, zero_point, applied).reshape(weight.shape)
    return values, scale.abs().repeat_interleave(groups.shape[-1], 1).reshape(weight.shape)


def differs_from_rounding(found, weight, preset):
    """Why `found` is not `weight` rounded to nearest, or None. Integers may fall to either side of a tie."""
    values, step = round_to_nearest(weight, preset)
    expected = values.to(found.dtype)
    differs = found != expected
    if not differs.any():
        return None
    position = (weight.float() / step).abs()[differs]
    is_tie = (position.frac() - 0.5).abs() < 1e-4
    one_step = (found.float() - expected.float()).abs()[differs] <= 1.01 * step[differs]
    if ROUNDING[preset]["type"] == "int" and bool((is_tie & one_step).all()):
        return None
    return f"{int(differs.sum())} of {differs.numel()} values are not the nearest"
