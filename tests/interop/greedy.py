# Greedy continuations by transformers, in float32: greedy.py PROMPT COUNT FOLDER...
# A line per folder: the least distance between the best and the second-best logit, and the text. Token i is character
# 32 + i, as gguf/file.mjs makes its models.
import sys

import torch
import transformers

transformers.logging.set_verbosity_error()


def continuation(folder, prompt, count):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation='eager')
    tokens = [ord(letter) - 32 for letter in prompt]
    distance = float('inf')
    with torch.no_grad():
        for _ in range(count):
            best = model.eval()(torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
            distance = min(distance, float(best.values[0] - best.values[1]))
            tokens.append(int(best.indices[0]))
    return distance, ''.join(chr(token + 32) for token in tokens[len(prompt):])


for folder in sys.argv[3:]:
    distance, text = continuation(folder, sys.argv[1], int(sys.argv[2]))
    print(f'{distance:.3g} {text}')
