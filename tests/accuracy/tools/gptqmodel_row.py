"""GPTQ by gptqmodel with its defaults, symmetric: see tool_run.py."""
import os

os.environ.setdefault("PYTHON_GIL", "1")
from tool_run import main  # isort: skip

import gptqmodel
import torch
from gptqmodel import BACKEND, GPTQModel, QuantizeConfig

# Of two cores it takes one for itself and then asks for two.
gptqmodel._default_cpu_workers = os.cpu_count


def quantize(model, target, bits, group, sequences):
    data = [{"input_ids": row, "attention_mask": [1] * len(row)} for row in sequences]
    config = QuantizeConfig(bits=bits, group_size=group, sym=True, offload_to_disk=False)
    loaded = GPTQModel.load(model, config, device="cpu", dtype=torch.float32)
    loaded.quantize(data, batch_size=1, backend=BACKEND.TORCH)
    loaded.save(target)


main(quantize)
