#!/usr/bin/env python3
"""How far calibrated folders are from the models that they were made from, by transformers, in float32.

stdin: JSON {"models": [{"source": folder, "folders": {name: folder}}], "sequences": [[token]]}.
stdout: a JSON line for each model, {name: mean over tokens of KL(source || folder) in nats}, or {"error"}, also for keys that transformers does not find.
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")

import torch
import transformers
from mxfp4_blocks import decode_blocks


def inputs_of(config, sequence):
    """Encoder-decoders predict the second half of it from the first."""
    if not config.is_encoder_decoder:
        return dict(input_ids=torch.tensor([sequence]))
    half = len(sequence) // 2 + 1
    return dict(input_ids=torch.tensor([sequence[:half]]), labels=torch.tensor([sequence[half:]]))


def predictions(folder, sequences):
    folder = decode_blocks(folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    model, info = getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    keys = [key for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in info[kind]]
    if keys:
        raise ValueError(f"keys that do not fit: {keys[:3]}")
    logits = [model.eval()(**inputs_of(config, sequence), use_cache=False).logits[0].double() for sequence in sequences]
    return torch.cat(logits).log_softmax(-1)


def main():
    asked = json.load(sys.stdin)
    torch.set_grad_enabled(False)
    for one in asked["models"]:
        try:
            source = predictions(one["source"], asked["sequences"])
            result = {}
            for name, folder in one["folders"].items():
                found = predictions(folder, asked["sequences"])
                result[name] = (source.exp() * (source - found)).sum(-1).mean().item()
        except Exception as error:  # of a class, or of a config that it refuses
            result = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
