"""How far a rounded value can be from its source, by the spec: bounds that hold for every element, whatever the details of the arithmetic.

Rounding to nearest is off by half a step. Symmetric integers reach half a step less than the largest positive value, zero points are rounded to a whole
step, and scales stored with 8 to 11 bits move the largest codes by up to a third of a step.
"""
import re

import numpy as np

# Largest value and, at that magnitude, half the distance to the next one.
HALF_STEP = {"fp4": (6.0, 1.0), "fp6_e2m3": (7.5, 0.25), "fp6_e3m2": (28.0, 2.0), "fp8_e4m3": (448.0, 16.0), "fp8_e5m2": (57344.0, 4096.0),
             "fp8_e5m3": (114688.0, 4096.0)}
# The group's largest value lies up to a binade above a power-of-two scale's grid: half a step of fp4 there is a quarter of it.
POWER_OF_TWO_SHARE = {"fp4": 0.26, "fp6_e2m3": 0.14, "fp6_e3m2": 0.14, "fp8_e4m3": 0.14, "fp8_e5m2": 0.26, "int8": 0.02}


def spans(source, spec):
    """Least and largest value of each element's group, zero among them."""
    rows, columns = source.shape
    scheme = spec.get("qscheme", "per_tensor")
    if spec["dtype"] == "mx":
        scheme = "per_group"
    high, wide = {"per_tensor": (rows, columns), "per_channel": (1, columns)}.get(scheme, (1, columns))
    axis = spec.get("ch_axis", -1) % 2 if scheme == "per_group" else spec.get("ch_axis", 0) % 2
    if scheme == "per_group":
        size = spec.get("group_size") or 32
        wide = size if size > 0 else columns
    if scheme == "per_block":
        high, wide = spec["block_size"]
    if scheme in ("per_group", "per_channel") and axis == (0 if scheme == "per_group" else 1):
        low, top = spans(source.T, {**spec, "ch_axis": -1 if scheme == "per_group" else 0})
        return low.T, top.T
    low, top = np.zeros_like(source), np.zeros_like(source)
    for row in range(0, rows, high):
        for column in range(0, columns, wide):
            part = source[row : row + high, column : column + wide]
            low[row : row + high, column : column + wide] = min(part.min(), 0)
            top[row : row + high, column : column + wide] = max(part.max(), 0)
    return low, top


def largest_errors(source, spec, is_in_float16=False):
    """is_in_float16: the format stores scales as Quark computes them of float16 weights."""
    low, top = spans(source, spec)
    largest = np.maximum(-low, top)
    dtype = spec["dtype"]
    tiny = 2.0**-22
    if dtype in ("bfloat16", "float16"):
        return np.abs(source) * 2.0**-8 + 1e-7
    if dtype == "mx" or spec.get("scale_format") == "e8m0":
        return largest * POWER_OF_TWO_SHARE[spec.get("mx_element_dtype", dtype) if dtype == "mx" else dtype] + tiny
    bits = re.fullmatch(r"u?int(\d+)", dtype)
    if bits:
        steps = 2.0 ** int(bits[1]) - 1
        is_symmetric = spec.get("symmetric", True)
        step = 2 * largest / steps if is_symmetric else (top - low) / steps
        # A scale that is computed in float16 is a multiple of 2^-24, which clips.
        return step * 1.34 + largest * 2.0**-8 + tiny + (steps * 2.0**-25 if is_in_float16 else 0)
    top_value, half = HALF_STEP[dtype]
    # Scales rounded to e4m3 or e5m3 are off by a sixteenth, which clips or stretches.
    slack = 0.07 if spec.get("scale_format") in ("e4m3", "e5m3") or "float8" in spec.get("scale_type", "") else 0.004
    if spec.get("scale_type") == "float16":
        # Below 2^-14 such scales are multiples of 2^-24 and rounded up.
        slack = slack + np.minimum(2.0**-24 * top_value / np.maximum(largest, 1e-30), 1) * half / top_value
    if is_in_float16:  # to the nearest multiple, which clips
        slack = slack + np.minimum(2.0**-25 * top_value / np.maximum(largest, 1e-30), 1)
    return largest * (half / top_value * 1.02 + slack) + tiny


def least_signal_to_noise(format, dtype):
    """dB between a format's weights and the fake-quantized ones: awq and gptq round scales to 11 bits and weights that lie on ties fall to either side;
    fake-quantized weights of a bfloat16 model are rounded to 8 bits, by up to 2^-9 of a value."""
    if format in ("awq", "gptq", "gguf"):
        return 40.0
    return 53.0 if dtype == "BF16" else 60.0
