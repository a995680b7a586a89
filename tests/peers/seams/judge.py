"""Judges what we wrote with decoders that are not ours: `python judge.py`, a case (JSON) a line on stdin, {"problems": [TEXT]} a line on stdout.

A case: {"format", "source": FOLDER, GGUF file (the first part) or null, "model": of GGUF, the folder that all was made of, "sourceShapes", "stacks": {name: {"singles", "parts", "isInputMajor"}} of tensors of several experts, "output": PATH, "fake": FOLDER or null, "alike": names whose spec is that of fake, "reread": FOLDER or null, "report": {"tensors", "files", "totals"}, "compared": {name: figures of the error},
"reported": {name: the same}, "spec": the one spec of all weights or null, "isNearest": rounded to nearest in the range of the data, "linear": layers that the
model's class has as linear ones, "tied": layers that share another's weight, "scales": an algorithm may multiply columns of weights, and divide what comes before them, "keepsOthers": tensors that are not quantized keep their values, up to BF16 those that the report names so: "narrowed",
"decoded": FOLDER for the decoded weights, if a loader is to be asked}
"""
import glob
import json
import os
import sys
import traceback

import numpy as np

import compressed_tensors_layout
import gguf_layout
import gptq_layout
import onnx_layout
import quark_layout
import written_files
from error_bounds import least_signal_to_noise, largest_errors
from figures import false_counts, false_errors, false_sizes, mean_square
from stored import read_config, read_file, read_folder, write_folder

JOINED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("w1", "w3"))


def decode(folder, shapes):
    """Values, names of quantized weights, and what tells whether a linear layer is quantized, of any folder of ours."""
    stored, block = read_folder(folder), read_config(folder).get("quantization_config")
    method = (block or {}).get("quant_method")
    if method is None:
        return {name: np.asarray(tensor, np.float64) for name, tensor in stored.items()}, set(), lambda layer: False
    if method == "compressed-tensors":
        return *compressed_tensors_layout.decode(stored, block), lambda layer: compressed_tensors_layout.is_linear_quantized(layer, block)
    if method == "quark":
        return *quark_layout.decode(stored, block, shapes), lambda layer: quark_layout.is_linear_quantized(layer, block)
    return *gptq_layout.decode(stored, block), lambda layer: gptq_layout.is_linear_quantized(layer, block)


def scales_differ(folder):
    """Layers that a runtime joins and whose scales of scales differ."""
    stored = read_folder(folder)
    for name, tensor in stored.items():
        layer, _, part = name.rpartition(".")
        if part not in ("weight_global_scale", "weight_scale_2") or tensor.size != 1:
            continue
        parent, _, kind = layer.rpartition(".")
        for group in JOINED:
            others = [stored.get(f"{parent}.{other}.{part}") for other in group] if kind == group[0] else []
            if any(other is not None and other.reshape(-1)[0] != tensor.reshape(-1)[0] for other in others):
                yield f"{parent}: {', '.join(group)} have different {part}"


def is_far(found, expected, relative, step=0.0):
    return np.abs(found - expected) > relative * np.maximum(np.abs(found), np.abs(expected)) + step


def first(name, mask, found, expected, what):
    at = np.unravel_index(int(np.argmax(mask)), mask.shape)
    return f"{name}: {int(mask.sum())} of {mask.size} values {what}, the first at {list(map(int, at))}: {found[at]:.6g}, not {expected[at]:.6g}"


def factors(found, source, axis):
    """Of rows (axis 1) or columns (axis 0), by least squares."""
    return np.sum(found * source, axis, keepdims=True) / np.maximum(np.sum(source * source, axis, keepdims=True), 1e-300)


def unscaled(name, found, source):
    """A weight without what an algorithm moved into the norm or the layer before it: factors of columns, and of the rows of the layers before others."""
    axes = (0, 1) if name.endswith(("v_proj.weight", "up_proj.weight")) else (0,)
    for axis in axes * 3:
        factor = factors(found, source, axis)
        found = found / np.where(factor == 0, 1, factor)
    return found


def moved_elsewhere(values, source, quantized):
    """Layers behind a norm whose columns were multiplied by anything but what their norm was divided by."""
    for name in quantized:
        block, _, layer = name.rpartition(".self_attn." if ".self_attn." in name else ".mlp.")
        norm = {"q_proj": "input_layernorm", "k_proj": "input_layernorm", "v_proj": "input_layernorm", "gate_proj": "post_attention_layernorm", "up_proj": "post_attention_layernorm"}.get(layer.removesuffix(".weight"))
        norm = f"{block}.{norm}.weight"
        if norm not in source or name not in values or values[name].ndim != 2 or values[name].shape != source[name].shape or layer in ("v_proj.weight", "up_proj.weight"):
            continue
        product = factors(values[name], source[name], 0)[0] * values[norm] / source[norm]
        rest = values[name] / np.maximum(np.abs(factors(values[name], source[name], 0)), 1e-30) - source[name]
        spread = np.sqrt(np.sum(rest**2, 0)) / np.maximum(np.sqrt(np.sum(source[name] ** 2, 0)), 1e-30)
        if len(values[name]) < 16:  # all values of a short column may be rounded in one direction
            continue
        far = np.abs(product - 1) > 2.0**-5 + 6 * spread
        if far.any():
            at = int(np.argmax(far))
            yield f"{name}: {int(far.sum())} columns are not multiplied by what {norm} was divided by, the first {at}: {product[at]:.6g} in all"


def judge_weight(case, name, source, found, rounded, reread):
    if found.shape != source.shape:
        yield f"{name} has shape {list(found.shape)}, the source {list(source.shape)}"
        return
    if not np.isfinite(source).all():
        yield f"{name} is quantized though its source holds values that are not finite"
        return
    if not np.isfinite(found).all():
        yield f"{name} holds values that are not finite"
        return
    noise = mean_square(found - source)
    if case["isNearest"]:
        if case["spec"]:
            limit = largest_errors(source, case["spec"], case["format"] == "quark" and case.get("dtype") == "F16")
            beyond = np.abs(found - source) > limit
            if beyond.any():
                yield first(name, beyond, found, source, "are further from the source than rounding explains")
        for kind in ("reported", "compared"):
            told = case[kind].get(name)
            for figure, value in false_errors(told, source, found) if told else ():
                yield f"{name}: {kind} {figure} {told[figure]}, found {value:.9g}"
    if rounded is not None and rounded.shape == found.shape:
        allowed = least_signal_to_noise(case["format"], case.get("dtype"))
        as_found = found
        if case.get("scales"):
            found, rounded = unscaled(name, found, source), unscaled(name, rounded, source)
            noise = mean_square(found - source)
        apart = mean_square(found - rounded)
        expected = mean_square(rounded - source)
        if apart > max(0.25 * expected, 10 ** (-allowed / 10) * mean_square(rounded)) and noise > case["noiseRatio"] * expected:
            yield f"{name}: mean square to the fake-quantized weights {apart:.6g}, whose own error is {expected:.6g}; found {noise:.6g}"
        found = as_found
    if reread is not None and reread.shape != found.shape:
        yield f"{name} is read back with shape {list(reread.shape)}, not {list(found.shape)}"
    elif reread is not None:
        # Written as bfloat16: 8 bits.
        far = is_far(reread, found, 2.0**-8, 1e-38)
        if far.any():
            yield first(name, far, reread, found, "are read back as others")


def split_stacks(values, stacks, names):
    """Values with one matrix an expert in place of stacked ones, where `names` has those."""
    split = {}
    for name, tensor in values.items():
        stack = stacks.get(name)
        if stack is None or f"{stack['singles']}.0.{stack['parts'][0]}.weight" not in names:
            split[name] = tensor
            continue
        for number, expert in enumerate(tensor):
            matrix = expert.T if stack["isInputMajor"] else expert
            for part, rows in zip(stack["parts"], np.split(matrix, len(stack["parts"]))):
                split[f"{stack['singles']}.{number}.{part}.weight"] = rows
    return split


def join_stacks(values, stacks):
    """The opposite: as the class of the model stores experts."""
    joined = dict(values)
    for name, stack in stacks.items():
        experts = []
        while f"{stack['singles']}.{len(experts)}.{stack['parts'][0]}.weight" in joined:
            rows = np.concatenate([joined.pop(f"{stack['singles']}.{len(experts)}.{part}.weight") for part in stack["parts"]])
            experts.append(rows.T if stack["isInputMajor"] else rows)
        if experts:
            joined[name] = np.stack(experts)
    return joined


def gguf_source(case, config, shapes):
    """Values of the source under the folder's names, by which reports of GGUF sources go from here on, too."""
    if not case["source"].endswith(".gguf"):
        return decode(case["source"], shapes)[:2]
    own = gguf_layout.own_names(config, shapes)
    for kind in ("reported", "compared"):
        case[kind] = {name: case[kind][own[name]] for name in shapes if own[name] in case[kind]}
    return gguf_layout.decode(case["source"], config, shapes)[0], set()


def stored_bits(case):
    """A function for the bits that quantized weights have in the output: codes, scales and zero points."""
    if case["format"] == "gguf":
        return lambda names: None
    stored = read_folder(case["output"])
    parts = compressed_tensors_layout.PARTS + gptq_layout.PARTS + quark_layout.PARTS

    def bits(names):
        layers = {name.removesuffix(".weight") for name in names}
        own = [tensor.nbytes for name, tensor in stored.items() if name.rpartition(".")[0] in layers and name.rpartition(".")[2] in parts]
        return 8 * sum(own)

    return bits


def judge_report(case, source, source_codes, quantized):
    before, output = case["source"], case["output"]
    if case["format"] == "gguf":
        files = {os.path.basename(path): os.path.getsize(path) for path in gguf_layout.parts_of(output)}
        weights = files
    else:
        files = {name: os.path.getsize(os.path.join(output, name)) for name in written_files.all_files(output)}
        weights = written_files.weight_files(output)
    sources = gguf_layout.parts_of(before) if before.endswith(".gguf") else written_files.weight_files(before)
    yield from false_sizes(case["report"], files, weights, sum(os.path.getsize(os.path.join(before, path)) for path in sources))
    # Of blocks that are not decoded here, the number of values is unknown.
    if not source_codes - source.keys():
        yield from false_counts(case["report"], source, quantized, stored_bits(case), case["format"] != "gguf")


def judge_folder(case):
    shapes = {name: tuple(shape) for name, shape in case["sourceShapes"].items()}
    if case["format"] == "gguf":
        config = read_config(case["model"])
        source, source_codes = gguf_source(case, config, shapes)
        values, quantized = gguf_layout.decode(case["output"], config, list(source))
        is_quantized = None
    else:
        source, source_codes = decode(case["source"], shapes)[:2]
        values, quantized, is_quantized = decode(case["output"], shapes)
    source = split_stacks(source, case["stacks"], values.keys() | quantized)
    rounded = decode(case["fake"], shapes)[0] if case["fake"] else {}
    reread = decode(case["reread"], shapes)[0] if case["reread"] else {}
    for name, original in source.items():
        if name in quantized and name not in values:
            # No decoder here: the shape, at least.
            if name in reread and reread[name].shape != original.shape:
                yield f"{name} is read back with shape {list(reread[name].shape)}, not {list(original.shape)}"
            continue
        if name not in values:
            yield f"{name} is not in the output"
        elif name in quantized:
            yield from judge_weight(case, name, original, values[name], rounded.get(name) if name in case["alike"] else None, reread.get(name))
        elif case["keepsOthers"] and values[name].shape == original.shape and not np.array_equal(values[name], original, equal_nan=True):
            # Half precision: 8 bits and more, and steps of 2^-24 at the lower end.
            is_half = case["casts"] or name in case["narrowed"] or case["format"] in ("gguf", "awq", "gptq")
            is_other = np.isfinite(values[name]) != np.isfinite(original)
            if (is_other | is_far(values[name], original, 2.0**-8 if is_half else 0, 2.0**-24 if is_half else 0)).any():
                yield f"{name} is not quantized and not what it was"
    # Values of few different sizes, as in sources that are quantized already, are all rounded in one direction.
    if case.get("scales") and not source_codes:
        yield from moved_elsewhere(values, source, quantized)
    for name in values.keys() - source.keys() - source_codes - quantized:
        if case["keepsOthers"]:
            yield f"{name} is new"
    if is_quantized:
        for layer in case["linear"]:
            if is_quantized(layer) != (f"{layer}.weight" in quantized):
                yield f"config.json says that {layer} is {'quantized' if is_quantized(layer) else 'float'}; the file holds the opposite"
        for layer in case["tied"]:
            if case["format"] == "quark" and is_quantized(layer):
                yield f"config.json says that the tied layer {layer} is quantized; the file has no weight for it"
        if case["joinsScales"]:
            yield from scales_differ(case["output"])
    if case.get("decoded"):
        config = read_config(case["output"])
        write_folder(case["decoded"], config, join_stacks(values, case["stacks"]))
    yield from judge_report(case, source, source_codes, quantized)
    if case["format"] != "gguf":
        yield from written_files.problems(case["source"], case["output"])
    if not quantized and case["expectsQuantized"]:
        yield "nothing is quantized, and the run succeeded"


def judge_onnx(case):
    source = {name: np.asarray(tensor, np.float64) for name, tensor in read_file(case["source"]).items()}
    shapes = {name: tensor.shape for name, tensor in source.items()}
    values = onnx_layout.decode(case["output"], shapes)
    for name, original in source.items():
        yield from judge_weight(case, name, original, values[name], None, None)
    files = {os.path.basename(path): os.path.getsize(path) for path in glob.glob(case["output"] + "*")}
    yield from false_sizes(case["report"], files, files, os.path.getsize(case["model"]))


def problems(case):
    try:
        return list(judge_onnx(case) if case["format"] == "onnx" else judge_folder(case))
    except Exception as error:  # what the decoders cannot read is a problem of the file
        where = traceback.extract_tb(error.__traceback__)[-1]
        return [f"the decoder stops: {type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"]


for line in sys.stdin:
    print(json.dumps({"problems": problems(json.loads(line))[:5]}), flush=True)
