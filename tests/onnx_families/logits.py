#!/usr/bin/env python3
"""What transformers computes of checkpoints, in float32: logits of decoders, hidden states of encoders, of each sequence by itself.

stdin: JSON {"models": [{"folder": path, "from": path of a checkpoint, "changes": {key: value of config.json}, "isEncoder"}], "sequences": [[token]]}.
Writes FOLDER.expected.safetensors, F32 [tokens, columns] "0", "1" ... by sequence. stdout: a JSON line for each model, {} or {"error"}.
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
for folder in ("../families", "../forward_families"):
    sys.path.append(os.path.join(os.path.dirname(__file__), folder))

import torch
import transformers
from losses import make_variant
from safetensors.torch import save_file


def outputs_of(folder, is_encoder, sequences):
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = transformers.AutoModel if is_encoder else getattr(transformers, config.architectures[0])
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    found = {}
    for i, sequence in enumerate(sequences):
        result = model(torch.tensor([sequence]))
        found[str(i)] = (result.last_hidden_state if is_encoder else result.logits)[0].float().contiguous()
    return found


def main():
    asked = json.load(sys.stdin)
    torch.set_grad_enabled(False)
    for one in asked["models"]:
        try:
            make_variant(one["folder"], one["from"], one["changes"])
            found = outputs_of(one["folder"], one["isEncoder"], asked["sequences"])
            save_file(found, one["folder"] + ".expected.safetensors")
            result = {}
        except Exception as error:  # of a class, or of a config that it refuses
            result = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
