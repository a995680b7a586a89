"""train_model.py TEXT TOKENIZER FOLDER [--steps N] [--pause N]: trains a Llama of 22 million parameters on bytes and writes it as its
publisher would, with the tokens that judge it. Weights are float32; matrices are multiplied in bfloat16 while it learns.

TEXT holds lines `BOOK CHAPTER:VERSE WORDS` (`bible -f` of Debian's package bible-kjv writes them: `Ge1:1 In the beginning`). Every 20th
chapter is held out: nothing is trained on it. TOKENIZER: a folder with a tokenizer of bytes, as tests/files/tiny-llama has.

The rate of learning rises for 100 steps, stays, and falls to nothing over the last 30 % of the steps. FOLDER.state keeps the run every
100 steps. A run that is started again resumes there, even with other --steps while its rate has not begun to fall; the order of
the text depends on the step only, so the result is that of a run which was never interrupted. --pause N: ends after step N."""

import argparse
import json
import math
import re
import shutil
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

LENGTH = 256
BATCH = 8
BOS, EOS, PAD = 256, 257, 258
PEAK_RATE = 1.5e-3
WARM_UP = 100
FALLING_PART = 0.3
WEIGHT_DECAY = 0.1
SEED = 1
HELD_OUT_EACH = 20
KEPT_EACH = 100
# Sequences of the files that are written.
CALIBRATION, VALIDATION = 32, 64
# Of these, the ones that the curve is of.
WATCHED = 16
# Widths are multiples of 256, so that every matrix has whole super-blocks of GGUF's K types.
SHAPE = dict(vocab_size=288, hidden_size=512, intermediate_size=1536, num_hidden_layers=7, num_attention_heads=8, num_key_value_heads=4,
             head_dim=64, max_position_embeddings=LENGTH, tie_word_embeddings=False, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD)


def parts_of(path):
    """Bytes for training and bytes held out: verses without their references, one a line."""
    chapters = {}
    for line in Path(path).read_text().splitlines():
        chapter, words = re.fullmatch(r"(\w+?\d+):\d+ (.*)", line).groups()
        chapters.setdefault(chapter, []).append(words)
    texts = ["\n".join(verses) + "\n" for verses in chapters.values()]
    join = lambda kept: torch.tensor(list("".join(kept).encode()), dtype=torch.int64)
    held = [text for index, text in enumerate(texts) if index % HELD_OUT_EACH == HELD_OUT_EACH - 1]
    return join([text for index, text in enumerate(texts) if index % HELD_OUT_EACH != HELD_OUT_EACH - 1]), join(held)


def windows(data, starts):
    """[n, LENGTH]: <s> and the bytes from each start."""
    return torch.stack([torch.cat([torch.tensor([BOS]), data[start : start + LENGTH - 1]]) for start in starts.tolist()])


def spread(data, count):
    """`count` windows at equal distances."""
    return windows(data, torch.arange(count) * ((len(data) - LENGTH) // count))


def rate_of(step, steps):
    falling = steps * FALLING_PART
    return PEAK_RATE * min(1, (step + 1) / WARM_UP, (steps - step) / falling)


def loss_of(model, tokens):
    """Nats of each token after the first."""
    logits = model(tokens[:, :-1]).logits.float()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def bits_per_byte(model, tokens):
    with torch.no_grad():
        losses = [loss_of(model, part).item() for part in tokens.split(BATCH)]
    return sum(losses) / len(losses) / math.log(2)


def optimizer_of(model):
    """Weight decay on matrices only."""
    groups = [{"params": [value for value in model.parameters() if (value.dim() > 1) == decays], "weight_decay": WEIGHT_DECAY * decays}
              for decays in (True, False)]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95))


class Run:
    def __init__(self, training, held, state_path, steps):
        torch.manual_seed(SEED)
        self.training, self.held, self.state_path, self.steps = training, held, Path(state_path), steps
        self.model = LlamaForCausalLM(LlamaConfig(**SHAPE))
        self.optimizer = optimizer_of(self.model)
        self.step, self.curve = 0, []
        if self.state_path.exists():
            self.read()

    def read(self):
        state = torch.load(self.state_path)
        if state["step"] > self.steps * (1 - FALLING_PART) and state["steps"] != self.steps:
            raise SystemExit(f"{self.state_path} is at step {state['step']} of {state['steps']}, whose rate falls otherwise in {self.steps} "
                             "steps: give the same --steps, or delete that file")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.curve = state["step"], state["curve"]

    def write(self):
        part = self.state_path.with_suffix(".part")
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step, "steps": self.steps,
                    "curve": self.curve}, part)
        part.rename(self.state_path)

    def learn(self):
        generator = torch.Generator().manual_seed(SEED * 1_000_003 + self.step)
        tokens = windows(self.training, torch.randint(len(self.training) - LENGTH, (BATCH,), generator=generator))
        for group in self.optimizer.param_groups:
            group["lr"] = rate_of(self.step, self.steps)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(self.model, tokens)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def until(self, last):
        losses, begun = [], time.process_time()
        while self.step < last:
            losses.append(self.learn())
            if self.step % KEPT_EACH == 0 or self.step == last:
                found = {"step": self.step, "training": sum(losses) / len(losses) / math.log(2), "heldOut": bits_per_byte(self.model, self.held[:WATCHED])}
                self.curve.append(found)
                losses = []
                self.write()
                print(json.dumps({**found, "processorSeconds": round(time.process_time() - begun)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("tokenizer")
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--pause", type=int)
    given = parser.parse_args()
    torch.set_num_threads(1)
    training, held = parts_of(given.text)
    validation = spread(held, VALIDATION)
    run = Run(training, validation, given.folder + ".state", given.steps)
    run.until(min(given.pause or given.steps, given.steps))
    if run.step < given.steps:
        return
    run.model.save_pretrained(given.folder)
    folder = Path(given.folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(given.tokenizer) / name, folder / name)
    for name, tokens in (("calibration", spread(training, CALIBRATION)), ("validation", validation)):
        save_file({"input_ids": tokens.to(torch.int32)}, folder / f"{name}_tokens.safetensors")
    numbers = {"parameters": run.model.num_parameters(), "steps": run.step, "tokens": run.step * BATCH * LENGTH,
               "bytes": {"training": len(training), "heldOut": len(held)}, "bitsPerByte": bits_per_byte(run.model, validation), "curve": run.curve}
    (folder / "training.json").write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
