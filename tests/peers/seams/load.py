"""Loads what we wrote as people do, `AutoModelForCausalLM.from_pretrained`, and compares the logits with those of the decoded weights.

    python load.py      a case (JSON) a line on stdin: {"output", "decoded": FOLDERS, "dtype", "dequantize"}; an outcome a line on stdout:
                        {"difference": largest difference of a logit, relative to the largest one, "ofModules": the same of a module's output, "isWhole": whether all modules were compared, "sway": what differences of that size in modules do to
                        the logits of the decoded weights, "isInBfloat16": whether a kernel casts to it} or {"error": TEXT, "isOfModel": whether
                        the decoded weights cannot be run either}
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1", TORCHDYNAMO_DISABLE="1", QUARK_LOG_LEVEL="error",
                  QUARK_DISABLE_COMPILE="1")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # loaders print

import torch
from transformers import AutoModelForCausalLM

TOKENS = torch.arange(1, 17).reshape(2, 8)


def all_experts(folder):
    """Every token goes to every expert, so that each counts, and no rounding chooses between two that are nearly equal."""
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    return {"num_experts_per_tok": config.get("num_local_experts", config.get("num_experts"))} if "num_experts_per_tok" in config else {}


def plain(folder, dtype, options):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **all_experts(folder), **options)


def logits(model):
    with torch.no_grad():
        return model.eval()(TOKENS).logits.float()


def computes_in_bfloat16(model):
    """gptqmodel's fused kernel, which it chooses on some processors, casts inputs of float32 to bfloat16."""
    return any(type(module).__name__.startswith("TorchFused") for module in model.modules())


def first_floats(output):
    outputs = output if isinstance(output, tuple) else (output,)
    return next((each for each in outputs if torch.is_tensor(each) and each.is_floating_point()), None)


def copied(value):
    """Classes add to outputs in place."""
    if torch.is_tensor(value):
        return value.clone()
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, (list, tuple)) else value


def largest_of_modules(model, reference):
    """The largest difference of a module with parameters of its own, given the reference's inputs: there, what rounded inputs do does not grow
    from block to block, as it does in logits; and whether every such module was compared. Outputs below 1e-8 have inputs that are too small for
    the scales of runtimes."""
    own = dict(model.named_modules())
    calls, is_whole = [], True
    for name, module in reference.named_modules():
        if next(module.parameters(recurse=False), None) is None:
            continue
        is_alike = name in own and (isinstance(module, torch.nn.Linear) or type(own[name]) is type(module))
        is_whole &= is_alike
        if is_alike:
            module.register_forward_hook(lambda _, given, named, output, name=name: calls.append((name, copied(given), copied(named), copied(first_floats(output)))), with_kwargs=True)
    logits(reference)
    for module in reference.modules():
        module._forward_hooks.clear()
    largest = 0.0
    dtype = next(parameter.dtype for parameter in model.parameters() if parameter.dtype.is_floating_point and parameter.dtype.itemsize > 1)
    alike = dict(reference.named_modules())
    with torch.no_grad():
        for name, given, named, expected in calls:
            if expected is None:
                continue
            module, own_dtype = own[name], dtype
            # Weights stored in 16 bits compute in 16 bits even in a model of float32; only their values are compared here.
            if type(module) is type(alike[name]) and all(parameter.dtype.itemsize > 1 for parameter in module.parameters(recurse=False)):
                module, own_dtype = module.to(expected.dtype), expected.dtype
            as_given = lambda each, dtype=own_dtype: each.to(dtype) if torch.is_tensor(each) and each.is_floating_point() else each
            found = first_floats(module(*map(as_given, given), **{key: as_given(each) for key, each in named.items()}))
            largest = max(largest, float((found.float() - expected.float()).abs().max() / expected.float().abs().max().clamp(min=1e-8)))
    return {"ofModules": largest, "isWhole": is_whole}


def sway_of(reference, expected, size):
    """How far logits move when the output of each module with parameters of its own moves by up to `size` of its largest value."""
    random, farthest = torch.Generator().manual_seed(1), 0.0

    def move(_, given, output):
        first = first_floats(output)
        if first is not None:
            noise = 2 * torch.rand(first.shape, generator=random) - 1
            first += (size * first.abs().max() * noise).to(first.dtype)

    hooks = [module.register_forward_hook(move) for module in reference.modules() if next(module.parameters(recurse=False), None) is not None]
    for _ in range(4):
        farthest = max(farthest, float((logits(reference) - expected).abs().max() / expected.abs().max()))
    for hook in hooks:
        hook.remove()
    return farthest


def text_of(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def runs(folder, dtype):
    try:
        logits(plain(folder, dtype, {}))
        return True
    except Exception:
        return False


def outcome(case):
    dtype = case["dtype"] if case["dtype"] == "auto" else getattr(torch, case["dtype"])
    options = {}
    if case["dequantize"]:
        from transformers import CompressedTensorsConfig

        options["quantization_config"] = CompressedTensorsConfig(dequantize=True)
    try:
        model = plain(case["output"], dtype, options)
        found = logits(model)
    except Exception as error:  # whatever a loader raises is its outcome
        return {"error": text_of(error), "isOfModel": not runs(case["decoded"], dtype)}
    try:
        reference = plain(case["decoded"], dtype, {})
        expected = logits(reference)
    except Exception as error:  # of float64, of which experts have no kernel
        return {"error": text_of(error), "isOfModel": True}
    if not torch.isfinite(found).all():
        return {"difference": 1e9, "ofModules": 1e9, "isWhole": False, "sway": 0.0}
    difference = float((found - expected).abs().max() / expected.abs().max())
    compared = largest_of_modules(model, reference)
    sway = sway_of(reference, expected, compared["ofModules"])
    return {"difference": difference, **compared, "sway": sway, "isInBfloat16": computes_in_bfloat16(model)}


for line in sys.stdin:
    print(json.dumps(outcome(json.loads(line))), file=answers, flush=True)
