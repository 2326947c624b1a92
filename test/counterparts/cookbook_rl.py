"""What tinker-cookbook makes of rollouts: advantages, training data, the KL penalty and metrics. JSON in, JSON out."""

import asyncio
import json
import sys

import tinker
import torch
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl import metrics
from tinker_cookbook.rl.data_processing import compute_advantages, trajectory_to_data
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition


def trajectory(rollout):
    turns = rollout["turns"]
    transitions = [
        Transition(
            ob=tinker.ModelInput.from_ints(turn["prompt"]),
            ac=TokensWithLogprobs(tokens=turn["tokens"], maybe_logprobs=turn["logprobs"]),
            reward=rollout["reward"] if i == len(turns) - 1 else 0.0,
            episode_done=i == len(turns) - 1,
        )
        for i, turn in enumerate(turns)
    ]
    return Trajectory(transitions=transitions, final_ob=tinker.ModelInput.from_ints([]))


def tensors(datum):
    names = ["target_tokens", "logprobs", "advantages", "mask"]
    return {
        "input": datum.model_input.to_ints(),
        **{name: datum.loss_fn_inputs[name].to_torch().tolist() for name in names},
    }


def main():
    with open(sys.argv[1]) as file:
        given = json.load(file)
    groups = [
        TrajectoryGroup(
            trajectories_G=[trajectory(rollout) for rollout in group],
            final_rewards_G=[0.0] * len(group),
            metrics_G=[{}] * len(group),
        )
        for group in given["groups"]
    ]
    advantages = compute_advantages(groups)
    data = [
        datum
        for group, values in zip(groups, advantages)
        for one, value in zip(group.trajectories_G, values)
        for datum in trajectory_to_data(one, float(value), include_provenance=False)
    ]
    policy = [torch.tensor(values) for values in given["policy"]]
    measured = metrics.compute_kl_sample_train(data, policy)
    plain = [tensors(datum) for datum in data]

    async def score(_client, _inputs):
        return given["reference"], None

    metrics.score_sequences = score
    penalty, _ = asyncio.run(metrics.incorporate_kl_penalty(data, None, given["penalty"], 0.0))
    print(
        json.dumps(
            {
                "advantages": [values.tolist() for values in advantages],
                "data": plain,
                "penalised": [tensors(datum)["advantages"] for datum in data],
                "metrics": {**measured, **penalty},
            }
        )
    )


main()
