"""tinker-cookbook's rl_loop recipe as it is, with the benchmark's tasks and grader in the place of GSM8K's. One JSON line a step.

    python rl_loop.py FILE    holding {"base_url": …, "model": folder, "questions": […], "pattern": regex, …}
"""

import json
import re
import sys
import tempfile
import time
from types import SimpleNamespace

import datasets
from tinker_cookbook import model_info, renderers
from tinker_cookbook.recipes import rl_loop
from tinker_cookbook.utils import ml_log
from tinker.lib.public_interfaces import sampling_client

with open(sys.argv[1]) as file:
    given = json.load(file)
pattern = re.compile(given["pattern"])
prompts = []


def graded(response, _answer):
    return 1.0 if pattern.search(response) else 0.0


def questions(*_args):
    rows = [{"question": text, "answer": ""} for text in given["questions"]]
    return datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)})


def renderer_of(name, tokenizer, original=renderers.get_renderer):
    renderer = original(name, tokenizer)
    build = renderer.build_generation_prompt

    # The recipe's own example and suffix are left out, so that both clients send the same prompts.
    def last_turn(messages):
        content = messages[-1]["content"].split(" Provide a numerical answer")[0]
        prompt = build([{"role": "user", "content": content}])
        prompts.append(prompt.length)
        return prompt

    renderer.build_generation_prompt = last_turn
    return renderer


class Logger:
    """Processor time is that of the whole process, with all threads of the SDK."""

    def __init__(self):
        self.before = time.process_time()

    def log_metrics(self, metrics, step):
        now = time.process_time()
        line = {"step": step, "seconds": metrics["time/total"], "client": now - self.before, "reward": metrics["reward/total"]}
        print(json.dumps({**line, "promptTokens": sum(prompts)}), flush=True)
        prompts.clear()
        self.before = time.process_time()

    def close(self):
        pass


# This version of the SDK asks for numbers of sequences that SkyRL does not give; the loss does without them.
sampling_client._attach_sequence_ids = lambda response, _ids: response
rl_loop.get_reward = graded
rl_loop.datasets.load_dataset = questions
rl_loop.renderers.get_renderer = renderer_of
model_info.get_recommended_renderer_name = lambda _name: given["renderer"]
ml_log.setup_logging = lambda **_options: Logger()
rl_loop.checkpoint_utils.save_checkpoint = lambda **_options: SimpleNamespace()
rl_loop.main(
    rl_loop.Config(
        base_url=given["base_url"],
        model_name=given["model"],
        log_path=tempfile.mkdtemp(),
        batch_size=given["groups"],
        group_size=given["size"],
        max_tokens=given["max_tokens"],
        max_steps=given["steps"],
        lora_rank=given["rank"],
        learning_rate=given["learning_rate"],
        loss_fn="importance_sampling",
        save_every=0,
    )
)
