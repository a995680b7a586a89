"""What calibrated algorithms of Quark make of a model: `python algorithms.py FOLDER MODEL`.

MODEL is a folder with a checkpoint; FOLDER has calibration.safetensors and evaluation.safetensors, `input_ids` [sequences, length]. Prints a line
for every algorithm with Quark's own config of it for Llama, and for none: {"name", "config": as Quark writes it, "bits": mean of -log2 p of the
tokens after the first of each sequence, "seconds"}, or {"name", "error"}.
"""
import copy
import json
import os
import sys
import time
import warnings

os.environ.update(QUARK_LOG_LEVEL="error", QUARK_DISABLE_COMPILE="1", TQDM_DISABLE="1", OMP_NUM_THREADS="1")
warnings.filterwarnings("ignore")

import torch
from evaluation import bits_per_token
from quark.torch import LLMTemplate, ModelQuantizer
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

ALGORITHMS = ("awq", "gptq", "gptaq", "qronos", "smoothquant", "autosmoothquant", "rotation")
SCHEME = "int4_wo_64"


def quantize(model, algorithm, tokens):
    """The model with rounded weights, and the config as Quark writes it."""
    config = LLMTemplate.get("llama").get_config(scheme=SCHEME, algorithm=algorithm, exclude_layers=["lm_head"])
    text = json.loads(json.dumps(config.to_dict()))
    quantizer = ModelQuantizer(config)
    return quantizer.freeze(quantizer.quantize_model(copy.deepcopy(model), list(tokens.split(1)))), text


def main(folder, source):
    tokens, held_out = (load_file(os.path.join(folder, f"{name}.safetensors"))["input_ids"].long() for name in ("calibration", "evaluation"))
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    for algorithm in (None, *ALGORITHMS):
        name, start = algorithm or "none", time.monotonic()
        try:
            quantized, config = quantize(model, algorithm, tokens)
            line = {"name": name, "config": config, "bits": bits_per_token(quantized, held_out), "seconds": time.monotonic() - start}
        except (AssertionError, AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            line = {"name": name, "error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
