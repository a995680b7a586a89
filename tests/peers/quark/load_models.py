"""Quantized checkpoints in Quark's own loader: `python load_models.py FOLDER FILE`.

FILE has a line a pair, {"name", "theirs": folder that Quark wrote, "ours": folder that we wrote}. Prints for each {"name", "largest": the largest
logit of theirs, "difference": the largest between both, "values": folder}, with the weights of theirs as Quark dequantizes them, or {"name",
"error", "of": "theirs" or "ours"}. Tokens are those of FOLDER/tokens.safetensors.
"""
import json
import os
import shutil
import sys
import warnings

os.environ.update(QUARK_LOG_LEVEL="error", QUARK_DISABLE_COMPILE="1", TQDM_DISABLE="1", OMP_NUM_THREADS="1")
warnings.filterwarnings("ignore")

import torch
from quark.torch import import_model_from_safetensors
from quark.torch.export.nn.modules.qparamslinear import QParamsLinear
from quark.torch.utils.llm.model_preparation import preprocess_for_quantization
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

FAILURES = (AssertionError, AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)


def load(folder):
    config = AutoConfig.from_pretrained(folder)
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=config.dtype or torch.float32).eval()
    preprocess_for_quantization(model)
    return import_model_from_safetensors(model, folder).eval()


def write_values(model, folder, source):
    """A checkpoint of the dequantized weights; an export of values is opened with layers that have them."""
    os.makedirs(folder, exist_ok=True)
    values = {f"{name}.weight": (module._get_qweight(module.weight) if isinstance(module, QParamsLinear) else module.weight).float().clone()
              for name, module in model.named_modules() if isinstance(module, (QParamsLinear, torch.nn.Linear))}
    save_file(values, os.path.join(folder, "model.safetensors"))
    shutil.copy(os.path.join(source, "config.json"), folder)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    del config["quantization_config"]
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


def compare(line, tokens):
    name, logits = line["name"], {}
    for of in ("theirs", "ours"):
        if not line[of]:
            continue
        try:
            model = load(line[of])
            logits[of] = model(tokens % model.config.vocab_size).logits
            if of == "theirs":
                write_values(model, f"{line[of]}.values", line[of])
        except FAILURES as error:
            return {"name": name, "of": of, "error": f"{type(error).__name__}: {error}"[:300]}
    difference = (logits["ours"] - logits["theirs"]).abs().max().item() if line["ours"] else None
    return {"name": name, "largest": logits["theirs"].abs().max().item(), "difference": difference, "values": f"{line['theirs']}.values"}


def main(folder, path):
    tokens = load_file(os.path.join(folder, "tokens.safetensors"))["input_ids"][:1].long()
    with open(path, encoding="utf-8") as file, torch.no_grad():
        for text in file:
            print(json.dumps(compare(json.loads(text), tokens)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
