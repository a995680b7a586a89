"""GPTQ by llm-compressor with its defaults, symmetric: see tool_run.py."""
from tool_run import main  # isort: skip

import torch
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from datasets import Dataset
from llmcompressor import oneshot
from llmcompressor.modifiers.quantization import GPTQModifier
from transformers import AutoModelForCausalLM, AutoTokenizer


def quantize(model, target, bits, group, sequences):
    data = Dataset.from_list([{"input_ids": row, "attention_mask": [1] * len(row)} for row in sequences])
    weights = QuantizationArgs(num_bits=bits, type="int", symmetric=True, strategy="group", group_size=group)
    scheme = QuantizationScheme(targets=["Linear"], weights=weights)
    recipe = GPTQModifier(config_groups={"group_0": scheme}, ignore=["lm_head"])
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(model)
    oneshot(
        model=loaded,
        tokenizer=tokenizer,
        dataset=data,
        recipe=recipe,
        max_seq_length=len(sequences[0]),
        num_calibration_samples=len(sequences),
    )
    loaded.save_pretrained(target)


main(quantize)
