"""AMD Quark's export: weights of a folder by its config and the documented layouts."""
import fnmatch

import numpy as np

from words import AWQ_ORDER, byte_codes, fp4, minifloat, nibbles, ordered_nibbles, power_of_two, signed

PLAIN_ORDER = tuple(range(8))
CASTS = ("float32", "bfloat16", "float16")
# Blocks with one exponent inside: the bit streams are checked by the golden cases.
BLOCKS = ("mx6", "mx9", "bfp16")


def spec_of(layer, config):
    """The weight's spec, or None for a layer that stays float. Quark's own rule: exclude, then layers, then global."""
    matches = lambda pattern: fnmatch.fnmatchcase(layer, pattern)
    if any(map(matches, config.get("exclude") or [])):
        return None
    for pattern, chosen in (config.get("layer_quant_config") or {}).items():
        if matches(pattern):
            return chosen and chosen.get("weight")
    chosen = (config.get("layer_type_quant_config") or {}).get("Linear") or config["global_quant_config"]
    return chosen and chosen.get("weight")


def as_rows(scale, spec, shape):
    """A number for each value of the weight, of scales [rows, groups], [rows] or one."""
    rows, columns = shape
    scale = np.asarray(scale, np.float64)
    if spec["qscheme"] == "per_tensor":
        return np.full(shape, scale.reshape(-1)[0])
    if spec["qscheme"] == "per_channel":
        return np.broadcast_to(scale.reshape(rows, 1), shape)
    if spec["qscheme"] == "per_block":
        high, wide = spec["block_size"]
        return np.repeat(np.repeat(scale, high, 0), wide, 1)[:rows, :columns]
    size = spec["group_size"] if (spec.get("group_size") or 0) > 0 else columns
    if scale.shape != (rows, -(-columns // size)):
        raise ValueError(f"scales have shape {scale.shape}, groups of {size} in {shape} need {(rows, -(-columns // size))}")
    return scale[:, np.arange(columns) // size]


def integers(parts, spec, shape, order, scale):
    rows, columns = shape
    bits = int("".join(c for c in spec["dtype"] if c.isdigit()))
    is_signed = spec["dtype"].startswith("int")
    per_group = spec["qscheme"] == "per_group"
    weight, zero = parts["weight"], parts.get("weight_zero_point")
    if bits == 4:
        codes = ordered_nibbles(weight, order)
        codes = codes[:columns, :rows].T if per_group else codes[:rows, :columns]
        codes = signed(codes, 4) if is_signed else codes
        if zero is not None:
            # One nibble of a scalar, rows' nibbles along a row of words, a row of words for each group.
            zero = ordered_nibbles(np.atleast_1d(zero), order)
            zero = zero[..., :rows].T if per_group else zero[:1] if spec["qscheme"] == "per_tensor" else zero[:rows]
            zero = signed(zero, 4) if is_signed else zero
    elif bits == 3:
        codes = signed(byte_codes(weight, 3), 3)
    else:
        codes = weight.T if per_group else weight
        zero = zero.T if zero is not None and per_group else zero
    codes = codes.astype(np.float64)
    scale = scale.T if per_group and bits != 3 else scale
    offset = 0 if zero is None else as_rows(zero, spec, shape)
    return (codes - offset) * as_rows(scale, spec, shape)


def floats(parts, spec, shape, scale):
    weight, dtype = parts["weight"], spec["dtype"]
    element = spec.get("mx_element_dtype") if dtype == "mx" else dtype
    if element == "fp4":
        codes = fp4(nibbles(weight).astype(np.int64))
    elif element in ("fp6_e2m3", "fp6_e3m2"):
        codes = minifloat(byte_codes(weight, 6), *((2, 3, 1) if element == "fp6_e2m3" else (3, 2, 3)))
    else:
        codes = weight.astype(np.float64)
        if element == "int8":
            codes = codes / 64  # OCP MX: the integers are multiples of 2^-6
    if scale.dtype == np.uint8:
        scale = minifloat(scale.astype(np.int64), 5, 3, 15) if spec.get("scale_format") == "e5m3" else power_of_two(scale)
    scale = np.asarray(scale, np.float64)
    if "weight_scale_2" in parts:
        scale = scale * float(np.asarray(parts["weight_scale_2"], np.float64).reshape(-1)[0])
    return codes * as_rows(scale, spec, shape)


PARTS = ("weight_scale", "weight_zero_point", "weight_scale_2", "weight_zero_point_2")


def decode(stored, config, shapes):
    values, quantized = {}, set()
    order = AWQ_ORDER if config.get("export", {}).get("pack_method", "reorder") == "reorder" else PLAIN_ORDER
    for name, tensor in stored.items():
        layer, _, part = name.rpartition(".")
        if part in PARTS:
            continue
        spec = spec_of(layer, config) if part == "weight" else None
        if isinstance(spec, dict) and spec["dtype"] in BLOCKS and tensor.dtype == np.uint8:
            quantized.add(name)
            continue
        if f"{layer}.weight_scale" not in stored or part != "weight":
            values[name] = np.asarray(tensor, np.float64)
            continue
        if spec is None:
            raise ValueError(f"{layer} has a scale; config.json quantizes it nowhere")
        parts = {part: stored[f"{layer}.{part}"] for part in ("weight", *PARTS) if f"{layer}.{part}" in stored}
        stages = spec if isinstance(spec, list) else [spec]
        scale = parts["weight_scale"]
        if len(stages) == 2 and not stages[1].get("is_scale_quant"):
            # Progressive: integer codes of the values of an fp8 stage.
            inner = {**parts, "weight_zero_point": parts.get("weight_zero_point_2")}
            inner = {key: value for key, value in inner.items() if value is not None}
            values[name] = integers(inner, stages[1], shapes[name], order, parts["weight_scale_2"]) * float(np.asarray(scale).reshape(-1)[0])
        elif stages[0]["dtype"].startswith(("int", "uint")) and scale.dtype != np.uint8:
            values[name] = integers(parts, stages[0], shapes[name], order, scale)
        else:
            values[name] = floats(parts, stages[0], shapes[name], scale)
        quantized.add(name)
    return values, quantized


def is_linear_quantized(layer, config):
    spec = spec_of(layer, config)
    return spec is not None and (isinstance(spec, list) or spec["dtype"] not in CASTS)
