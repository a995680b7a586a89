#!/usr/bin/env python3
"""Compares GGUF files with those of llama.cpp's tools.

stdin: JSON lines {"recipe", "theirs": path, "ours": path}. stdout: a JSON line for each, {"problems": [...], "differences": [keys that differ as
`ALLOWED` says, with the reason]}. Keys are compared for f32, whose file the converter wrote with a tokenizer or without.
"""
import json
import re
import sys

import numpy as np
from gguf import GGUFReader, dequantize

GENERAL = "of the file, no part of the model: names, sizes, file type"
ALLOWED = [  # pattern of the key, "ours", "theirs" or "both": who has it, reason
    (r"(general\.(?!architecture)|GGUF\.|wasmquant\.)", "any", GENERAL),
    (r".*\.vocab_size", "ours", "written for every architecture: the rows of the embedding"),
    (r"tokenizer\.ggml\.pre", "any", "the converter recognizes tokenizers by a hash, which a tiny vocabulary does not have"),
    (r"tokenizer\.ggml\.eot_token_id", "theirs", "the converter hard-codes 107 for this class"),
    (r"tokenizer\.ggml\.add_space_prefix", "ours", "the converter leaves it out for this class; llama.cpp then assumes true"),
    (r".*\.rope\.freq_base", "ours", "the converter leaves it out for this class; llama.cpp then assumes 10000"),
    (r".*\.attention\.(key|value)_length", "ours", "the converter leaves head_dim out for this class, and llama.cpp computes the same"),
    (r"granite(moe)?\.(ssm\.|rope\.scaling\.finetuned|expert_shared_feed)", "theirs", "of its hybrid class, of which the file has no layer"),
    (r"granite(moe)?\.attention\.head_count_kv", "both", "one number for all layers, or the same for each"),
    (r"granite\w*\.expert_(used_)?count", "theirs", "0, which llama.cpp assumes"),
    (r"gptneox\.attention\.head_count_kv", "ours", "as many as there are heads, which llama.cpp assumes"),
    (r"phi2\.feed_forward_length", "both", "the converter writes four times the width, whatever config.json says"),
    (r"nemotron\.attention\.layer_norm_rms_epsilon", "theirs", "its norms are layer norms"),
    (r"cohere2moe\.feed_forward_length", "ours", "of dense layers, which the model does not have"),
    (r".*\.rope\.scaling\.type", "theirs", "\"none\" is what llama.cpp assumes"),
    (r".*\.rope\.dimension_count", "ours", "the width of a head, which llama.cpp assumes"),
]


# Keys whose floats differ in their last bits, by at most so much of their size, with the reason.
CLOSE = {"gemma3n.activation_sparsity_scale": (1e-6, "the last bits of a quantile, which releases of torch compute differently")}

# Of 16-bit files: the converter rounds them, llama-quantize does not.
FLOATS = ("F32", "F16", "BF16")
NEEDED = "v.token_embd.img_break"
TWICE = "mm.input_projection.weight"
KEPT = ("attn_rel_b.weight", "per_layer_model_proj.weight", "ffn_gate_inp.weight")


def value_of(field):
    value = field.contents()
    return [round(v, 9) if isinstance(v, float) else v for v in value] if isinstance(value, list) else value


def shape_of(tensor):
    """Without axes of length 1 at the end, which llama-quantize drops."""
    shape = [int(length) for length in tensor.shape]
    while len(shape) > 1 and shape[-1] == 1:
        shape.pop()
    return shape


def is_near(a, b):
    a, b = (dequantize(tensor.data, tensor.tensor_type) for tensor in (a, b))
    return np.linalg.norm(a - b) < 0.1 * np.linalg.norm(b)


def compare(theirs, ours, with_keys):
    problems, reasons = [], {}
    mine, its = ({t.name: t for t in reader.tensors} for reader in (ours, theirs))
    if NEEDED in mine and NEEDED not in its:
        reasons.setdefault("the converter leaves it out, and llama.cpp does not load its file", []).append(NEEDED)
        del mine[NEEDED]
    for name in sorted(mine.keys() ^ its.keys()):
        problems.append(f"{name} is only in {'ours' if name in mine else 'theirs'}")
    for name in mine.keys() & its.keys():
        a, b = mine[name], its[name]
        is_kept = name.endswith(KEPT) and a.tensor_type.name == "F32" and b.tensor_type.name in ("F16", "BF16")
        if is_kept and shape_of(a) == shape_of(b) and np.allclose(a.data, dequantize(b.data, b.tensor_type), rtol=2**-8, atol=1e-7):
            reasons.setdefault("F32, in which llama-quantize leaves it, too", []).append(name)
        elif shape_of(a) != shape_of(b) or a.tensor_type != b.tensor_type:
            problems.append(f"{name}: {a.tensor_type.name}{shape_of(a)} is {b.tensor_type.name}{shape_of(b)} in theirs")
        elif name.endswith(("rope_freqs.weight", ".ssm_a")) and np.allclose(a.data, b.data, rtol=3e-7, atol=0):
            if not np.array_equal(a.data, b.data):
                reasons.setdefault("the last bit of a power, which torch computes in float32", []).append(name)
        elif name == TWICE and a.tensor_type.name not in FLOATS and is_near(a, b):
            if a.data.tobytes() != b.data.tobytes():
                reasons.setdefault("from the model's values, which the converter rounds to F16 first", []).append(name)
        elif a.tensor_type.name == "MXFP4" and np.array_equal(dequantize(a.data, a.tensor_type), dequantize(b.data, b.tensor_type)):
            if a.data.tobytes() != b.data.tobytes():
                reasons.setdefault("the same values, of a scale that the largest one needs", []).append(name)
        elif a.data.tobytes() != b.data.tobytes():
            problems.append(f"{name}: other bytes")
    model = theirs.fields.get("tokenizer.ggml.model")
    has_vocabulary = model is not None and model.contents() not in ("no_vocab", "none")
    for key in sorted(ours.fields.keys() | theirs.fields.keys() if with_keys else ()):
        if not has_vocabulary and key.startswith("tokenizer."):
            continue
        a, b = (value_of(reader.fields[key]) if key in reader.fields else None for reader in (ours, theirs))
        if a == b:
            continue
        who = "ours" if b is None else "theirs" if a is None else "both"
        bits, close = CLOSE.get(key, (0, None))
        if who == "both" and bits and len(a) == len(b) and np.allclose(a, b, rtol=bits, atol=0):
            reasons.setdefault(close, []).append(key)
            continue
        reason = next((why for pattern, of, why in ALLOWED if of in ("any", who) and re.fullmatch(pattern + ".*", key)), None)
        if reason is None:
            problems.append(f"{key}: {str(a)[:80]} is {str(b)[:80]} in theirs")
        elif reason != GENERAL:
            reasons.setdefault(reason, []).append(key)
    return problems, reasons


def main():
    for line in sys.stdin:
        pair = json.loads(line)
        theirs, ours = GGUFReader(pair["theirs"]), GGUFReader(pair["ours"])
        problems, reasons = compare(theirs, ours, pair["recipe"] == "f32")
        print(json.dumps({"problems": problems, "differences": [f"{', '.join(keys)}: {why}" for why, keys in reasons.items()]}), flush=True)


if __name__ == "__main__":
    main()
