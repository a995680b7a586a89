#!/usr/bin/env python3
"""Cross entropy and greedy continuations of checkpoints by transformers, in float32, of encoder-decoders behind an input; embeddings of encoders.

stdin: JSON {"models": [{"folder": path, "from": path of a checkpoint, "changes": {key: value of config.json; null: none}, "isEncoder"}], "sequences": [[token]], "prompt": [token], "count": tokens to continue by}.
stdout: a JSON line for each model, whose folder is made if it is another one,
{"losses": [nats of each sequence], "tokens": [the continuation], "margin": the least difference between the two largest logits at a token of it},
of an encoder {"embeddings": {"mean", "first" and "last", of the states of the tokens: [[number] of each sequence]}},
or {"error"}.
"""
import json
import os
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")

sys.path.append(os.path.join(os.path.dirname(__file__), "../families"))

import torch
import transformers
from mxfp4_blocks import decode_blocks


def nats(model, tokens):
    if model.config.is_encoder_decoder:
        half = len(tokens) // 2 + 1
        return sum_of(model(input_ids=torch.tensor([tokens[:half]]), labels=torch.tensor([tokens[half:]])), tokens[half:])
    logits = model(torch.tensor([tokens]), use_cache=False).logits[0, :-1].double()
    return torch.nn.functional.cross_entropy(logits, torch.tensor(tokens[1:]), reduction="sum").item()


def sum_of(found, labels):
    return torch.nn.functional.cross_entropy(found.logits[0].double(), torch.tensor(labels), reduction="sum").item()


def greedy(model, prompt, count):
    """By whole passes, without a cache."""
    source = None
    if model.config.is_encoder_decoder:
        source, prompt = torch.tensor([prompt]), [model.config.decoder_start_token_id]
    tokens, margin = list(prompt), float("inf")
    for _ in range(count):
        inputs = dict(input_ids=torch.tensor([tokens])) if source is None else dict(input_ids=source, decoder_input_ids=torch.tensor([tokens]))
        largest = model(**inputs, use_cache=False).logits[0, -1].double().topk(2)
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
        if value is None:
            config.pop(key, None)
            continue
        config[key] = float(value) if isinstance(config.get(key), float) else value
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def embeddings(folder, sequences):
    # T5's whole model asks for tokens of its decoder.
    kind = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}.get(transformers.AutoConfig.from_pretrained(folder).model_type, "AutoModel")
    model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    states = [model(torch.tensor([sequence])).last_hidden_state[0].double() for sequence in sequences]
    pools = {"mean": lambda state: state.mean(0), "first": lambda state: state[0], "last": lambda state: state[-1]}
    return {name: [pool(state).tolist() for state in states] for name, pool in pools.items()}


def main():
    asked = json.load(sys.stdin)
    torch.set_grad_enabled(False)
    for one in asked["models"]:
        folder = one["folder"]
        try:
            make_variant(folder, one["from"], one["changes"])
            if one["isEncoder"]:
                print(json.dumps({"embeddings": embeddings(folder, asked["sequences"])}), flush=True)
                continue
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
