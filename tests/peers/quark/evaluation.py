"""How well a model predicts tokens: `python evaluation.py FOLDER MODEL...` prints {"model", "bits"} for each folder with float weights, by the
tokens of FOLDER/evaluation.safetensors."""
import json
import math
import os
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


@torch.no_grad()
def bits_per_token(model, tokens):
    """Mean of -log2 p over all tokens [sequences, length] after the first of each sequence."""
    total = 0.0
    for row in tokens.split(1):
        logits = model(row).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(logits, row[0, 1:], reduction="sum").item()
    return total / (tokens.shape[0] * (tokens.shape[1] - 1)) / math.log(2)


def main(folder, *models):
    tokens = load_file(os.path.join(folder, "evaluation.safetensors"))["input_ids"].long()
    for path in models:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        print(json.dumps({"model": path, "bits": bits_per_token(model, tokens)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
