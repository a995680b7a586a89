#!/usr/bin/env python3
"""Cross entropy and greedy continuations of checkpoints by transformers, in float32.

stdin: JSON {"models": [{"folder": path, "from": path of a checkpoint, "changes": {key: value of config.json}}], "sequences": [[token]], "prompt": [token], "count": tokens to continue by}.
stdout: a JSON line for each model, whose folder is made if it is another one,
{"losses": [nats of each sequence], "tokens": [the continuation], "margin": the least difference between the two largest logits at a token of it},
or {"error"}.
"""
import json
import os
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")

import safetensors.torch
import torch
import transformers
from transformers.integrations import mxfp4


def nats(model, tokens):
    logits = model(torch.tensor([tokens]), use_cache=False).logits[0, :-1].double()
    return torch.nn.functional.cross_entropy(logits, torch.tensor(tokens[1:]), reduction="sum").item()


def greedy(model, prompt, count):
    """By whole passes, without a cache."""
    tokens, margin = list(prompt), float("inf")
    for _ in range(count):
        largest = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].double().topk(2)
        margin = min(margin, (largest.values[0] - largest.values[1]).item())
        tokens.append(largest.indices[0].item())
    return tokens[len(prompt):], margin


def make_variant(folder, source, changes):
    """The same weights with other keys; numbers are floats where the key's value was one."""
    if folder == source:
        return
    shutil.copytree(source, folder)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    for key, value in changes.items():
        config[key] = float(value) if isinstance(config.get(key), float) and value is not None else value
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def decode_blocks(folder):
    """The same checkpoint with experts as values: transformers' loader of MXFP4 needs packages that its decoder does not."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    if config.pop("quantization_config", {}).get("quant_method") != "mxfp4":
        return folder
    plain = folder + ".plain"
    os.makedirs(plain)
    tensors = safetensors.torch.load_file(os.path.join(folder, "model.safetensors"))
    for blocks in [name for name in tensors if name.endswith("_blocks")]:
        name = blocks.removesuffix("_blocks")
        tensors[name] = mxfp4.convert_moe_packed_tensors(tensors.pop(blocks), tensors.pop(name + "_scales"), dtype=torch.float32).contiguous()
    safetensors.torch.save_file(tensors, os.path.join(plain, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(plain, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return plain


def main():
    asked = json.load(sys.stdin)
    torch.set_grad_enabled(False)
    for one in asked["models"]:
        folder = one["folder"]
        try:
            make_variant(folder, one["from"], one["changes"])
            folder = decode_blocks(folder)
            config = transformers.AutoConfig.from_pretrained(folder)
            model = getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
            tokens, margin = greedy(model, asked["prompt"], asked["count"])
            result = {"losses": [nats(model, sequence) for sequence in asked["sequences"]], "tokens": tokens, "margin": margin}
        except Exception as error:  # of a class, or of a config that it refuses
            result = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
