"""AutoRound, symmetric, 50 iterations on 8 of the sequences (its defaults, 200 and 128, take hours here): see tool_run.py. The folder has the rounded weights."""
from tool_run import main  # isort: skip

import torch
from auto_round import AutoRound
from transformers import AutoModelForCausalLM, AutoTokenizer

ITERATIONS = 50
SAMPLES = 8


def quantize(model, target, bits, group, sequences):
    chosen = torch.tensor(sequences[:: len(sequences) // SAMPLES])
    data = [{"input_ids": row[None], "attention_mask": torch.ones_like(row[None])} for row in chosen]
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    rounding = AutoRound(
        loaded,
        AutoTokenizer.from_pretrained(model),
        bits=bits,
        group_size=group,
        sym=True,
        iters=ITERATIONS,
        nsamples=len(chosen),
        seqlen=chosen.shape[1],
        batch_size=2,
        dataset=data,
        device_map="cpu",
        amp=False,
        enable_torch_compile=False,
    )
    rounded, _ = rounding.quantize()
    rounded.save_pretrained(target)


main(quantize)
