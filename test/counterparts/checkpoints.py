"""Reads checkpoints with transformers and peft and prints each text's log-probabilities under them.

Called with a JSON object: `base` (a Hugging Face folder), `adapter` and `whole` (checkpoint folders), `tokens` (a list).
"""

import json
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer


def logprobs_of(model, tokens):
    with torch.no_grad():
        logits = model(torch.tensor([tokens[:-1]])).logits[0].double()
    scores = torch.log_softmax(logits, dim=-1)
    return [scores[i, token].item() for i, token in enumerate(tokens[1:])]


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def main():
    order = json.loads(sys.argv[1])
    adapted = PeftModel.from_pretrained(load(order["base"]), order["adapter"]).eval()
    whole = load(order["whole"])
    print(
        json.dumps(
            {
                "base": logprobs_of(load(order["base"]), order["tokens"]),
                "adapter": logprobs_of(adapted, order["tokens"]),
                "whole": logprobs_of(whole, order["tokens"]),
                "tokenized": AutoTokenizer.from_pretrained(order["whole"]).encode("abc", add_special_tokens=False),
            }
        )
    )


main()
