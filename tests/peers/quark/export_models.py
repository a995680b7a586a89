"""Models quantized and exported by Quark: `python export_models.py FOLDER MODEL...`.

A MODEL is the name of one in tiny_models.py or a folder with a checkpoint, and :bfloat16 or :float16 for its weights in that dtype. Each is quantized with every scheme of Quark's own LLMTemplate and
written by its exporter. Prints a line an export: {"model", "name", "source": folder of the float model, "activations": file, "folder",
"sharing": keys of the config that its export leaves out, "seconds"}, or "error" for the last two where Quark fails. Static scales of activations are calibrated on FOLDER/tokens.safetensors, one
sequence a batch; what enters and leaves the layers of the float model then is in the file of activations.
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
from quark.torch import LLMTemplate, ModelQuantizer, export_safetensors
from safetensors.torch import load_file, save_file
from tiny_models import MODELS, make_model
from transformers import AutoModelForCausalLM

# Routers are of no class that Quark quantizes, so its configs do not name them.
EXCLUDED = ["lm_head"]
SHARING = ("shared_scale_groups", "sync_moe_expert_input_amax")
# One scheme of each kind of packing.
PACKED = ("int4_wo_32", "uint4_wo_32", "uint4_wo_per_channel", "int4_fp8")


# What models of many parameters are quantized with: one scheme of each kind.
LARGE = 50_000_000
OF_LARGE = ("int4_wo_64", "uint4_wo_64", "int8", "fp8", "ptpc_fp8", "mxfp4")


def variants(is_large):
    """Name, and the arguments of LLMTemplate.get_config and of export_safetensors."""
    if is_large:
        yield from ((scheme, {"scheme": scheme}, {}) for scheme in OF_LARGE)
        return
    for scheme in LLMTemplate._SCHEME_COLLECTION.get_supported_schemes():
        yield scheme, {"scheme": scheme}, {}
    for scheme in PACKED:
        yield f"{scheme}, pack_method order", {"scheme": scheme}, {"pack_method": "order"}
    for scheme in ("fp8", "int4_wo_32"):
        yield f"{scheme}, kv_cache fp8", {"scheme": scheme, "kv_cache_scheme": "fp8"}, {}
    for scheme in ("int8", "uint4_wo_32"):
        yield f"{scheme}, fake_quantized", {"scheme": scheme}, {"weight_format": "fake_quantized"}
    yield "nvfp4, scales not shared", {"scheme": "nvfp4", "shared_scale_groups": []}, {}


def open_model(name, folder):
    """The float model, and the folder of its checkpoint in the dtype that the name ends in, or float32."""
    name, _, dtype = name.partition(":")
    dtype = getattr(torch, dtype or "float32")
    if name in MODELS:
        source = os.path.join(folder, f"{name}-{dtype}".replace("torch.", ""))
        model = make_model(name, source, dtype)
    else:
        source = name
        model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype).eval()
    model.config._name_or_path = source
    return model, source


def write_activations(model, tokens, path):
    """Inputs of every linear layer, and outputs of those whose values go into the cache; none for experts that no token reaches."""
    found, hooks = {}, []

    def keep(name):
        def hook(_, inputs, output):
            found.setdefault(f"{name}.input", []).append(inputs[0].flatten(0, -2))
            if name.endswith(("k_proj", "v_proj")):
                found.setdefault(f"{name}.output", []).append(output.flatten(0, -2))
        return hook

    embedding = model.get_input_embeddings().weight
    for name, module in model.named_modules():
        # A head that is tied to the embedding has no tensor, and so is no layer of the checkpoint.
        if isinstance(module, torch.nn.Linear) and module.weight is not embedding:
            hooks.append(module.register_forward_hook(keep(name)))
    for row in tokens.split(1):
        model(row)
    for hook in hooks:
        hook.remove()
    save_file({name: torch.cat(parts).contiguous() for name, parts in found.items()}, path)


def export(model, tokens, target, arguments, export_arguments):
    """Quantizes a copy of `model` and writes it into `target`; returns what its config says of scales that layers share."""
    config = LLMTemplate.get("llama").get_config(exclude_layers=EXCLUDED, **arguments)
    sharing = {key: getattr(config, key) for key in SHARING}
    quantizer = ModelQuantizer(config)
    quantized = quantizer.freeze(quantizer.quantize_model(copy.deepcopy(model), list(tokens.split(1))))
    export_safetensors(quantized, target, **export_arguments)
    return sharing


def main(folder, *names):
    tokens = load_file(os.path.join(folder, "tokens.safetensors"))["input_ids"].long()
    for model_name in names:
        model, source = open_model(model_name, folder)
        own_tokens = tokens % model.config.vocab_size
        activations = os.path.join(folder, f"{os.path.basename(model_name)}.activations.safetensors".replace(":", "-"))
        with torch.no_grad():
            write_activations(model, own_tokens, activations)
        for name, arguments, export_arguments in variants(model.num_parameters() > LARGE):
            line = {"model": os.path.basename(model_name), "name": name, "source": source, "activations": activations}
            line["folder"] = os.path.join(folder, f"{line['model']} {name}".replace(",", "").replace(" ", "-").replace(":", "-"))
            start = time.monotonic()
            try:
                with torch.no_grad():
                    line["sharing"] = export(model, own_tokens, line["folder"], arguments, export_arguments)
                line["seconds"] = time.monotonic() - start
            except (AssertionError, AttributeError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
                line["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
