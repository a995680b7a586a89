"""What the scripts of this folder share: `python TOOL.py MODEL TARGET BITS GROUP TOKENS`.

MODEL: folder of the model; TARGET: where the quantized one goes; TOKENS: JSON of the sequences to calibrate on. A line of JSON says what it took.
"""
import json
import os
import sys
import time

import torch

torch.set_num_threads(os.cpu_count())


def main(quantize):
    """Runs quantize(model, target, bits, group, sequences); loading and saving count, imports do not."""
    model, target, bits, group, tokens = sys.argv[1:6]
    with open(tokens, encoding="utf-8") as file:
        sequences = json.load(file)
    printed, sys.stdout = sys.stdout, sys.stderr
    start, processor = time.perf_counter(), time.process_time()
    quantize(model, target, int(bits), int(group), sequences)
    took = {"seconds": time.perf_counter() - start, "processorSeconds": time.process_time() - processor}
    print(json.dumps(took), file=printed, flush=True)
