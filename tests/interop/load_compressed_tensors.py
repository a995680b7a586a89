"""Loads our compressed-tensors folders with transformers and compares them with what the library says they hold.

    python3 load_compressed_tensors.py TOKENS.safetensors CASE_FOLDER...

A case folder holds `quantized/` (compressed-tensors), `source/` (the model it was made from) and `dequantized.safetensors`
(float32 values of the quantized weights, by the library). Prints one JSON line a case:
  loading    missing, unexpected or mismatched keys; all must be empty
  weights    loaded in float32 and decompressed by the loader: the values of dequantized.safetensors
  logits     in the model's own dtype, first two rows of the tokens: those of `source/` carrying the dequantized weights,
             whose inputs are rounded to the stored scales where `quantized/` has such
The loader decompresses MX and NVFP4 weights to bfloat16 whatever is asked for, so there all is loaded in bfloat16.
"""
import glob
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["TQDM_DISABLE"] = "1"

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def load(folder, dtype):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, output_loading_info=True)
    keys = {kind: sorted(map(str, info[kind])) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[kind]}
    return model.eval(), keys


def same_values(left, right):
    """Every value the same; only the sign of a zero may differ."""
    return left.dtype == right.dtype and torch.equal(left, right)


def round_inputs(model, folder):
    """Static int8 inputs, symmetric: x becomes clamp(round(x / scale), -128, 127) * scale before every such layer."""
    stored = {}
    for file in glob.glob(os.path.join(folder, "*.safetensors")):
        stored.update(load_file(file))
    scales = {name.removesuffix(".input_scale"): scale for name, scale in stored.items() if name.endswith(".input_scale")}
    for name, scale in scales.items():
        def rounded(_, inputs, scale=scale):
            return (torch.clamp(torch.round(inputs[0] / scale), -128, 127).to(inputs[0].dtype) * scale,)

        model.get_submodule(name).register_forward_pre_hook(rounded)
    return len(scales)


@torch.no_grad()
def check(folder, tokens):
    dequantized = load_file(os.path.join(folder, "dequantized.safetensors"))
    with open(os.path.join(folder, "quantized", "config.json"), encoding="utf-8") as file:
        compressor = json.load(file)["quantization_config"]["format"]
    always_bfloat16 = compressor in ("mxfp4-pack-quantized", "nvfp4-pack-quantized", "mxfp8-quantized")
    if always_bfloat16:
        dequantized = {name: value.to(torch.bfloat16) for name, value in dequantized.items()}
    quantized, keys = load(os.path.join(folder, "quantized"), torch.bfloat16 if always_bfloat16 else torch.float32)
    layers = [name for name, module in quantized.named_modules() if getattr(module, "quantization_scheme", None)]
    quantized(tokens[:, :2])  # the loader decompresses before the first forward pass
    found = dict(quantized.named_parameters())
    differing = [name for name, value in dequantized.items() if name not in found or not same_values(found[name], value)]

    own_dtype = torch.bfloat16 if always_bfloat16 else "auto"
    in_own_dtype, _ = load(os.path.join(folder, "quantized"), own_dtype)
    reference, _ = load(os.path.join(folder, "source"), own_dtype)
    unknown = reference.load_state_dict(dequantized, strict=False).unexpected_keys
    static = round_inputs(reference, os.path.join(folder, "quantized"))
    logits, expected = in_own_dtype(tokens).logits, reference(tokens).logits
    return {
        "case": os.path.basename(folder),
        "dtype": str(reference.dtype).removeprefix("torch."),
        "weights": len(dequantized),
        "static_inputs": static,
        "loading": {**keys, **({"unknown_keys": unknown} if unknown else {})},
        "not_recognised": sorted(set(dequantized) - {layer + ".weight" for layer in layers}),
        "weights_differing": differing,
        "logits_equal": same_values(logits, expected),
        "logits_difference": (logits.double() - expected.double()).abs().max().item(),
    }


def main():
    tokens = load_file(sys.argv[1])["input_ids"][:2].long()
    for folder in sys.argv[2:]:
        try:
            outcome = check(folder, tokens)
        except Exception as error:  # the loader's own words are the finding
            outcome = {"case": os.path.basename(folder), "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
