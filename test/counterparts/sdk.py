"""Drives a server through the official SDK, as its users would, and says of each check whether it held.

Called with the server's URL and key; one JSON line a check goes to standard output. A check is a function whose name
begins with `check_`; they run in the order they are written and share the state `S`.
"""

import json
import sys
import time
import traceback

import numpy as np
import tinker
import torch
from tinker import types

URL, KEY = sys.argv[1:3]
MODEL = "builtin:tiny"
VERSION = tuple(int(part) for part in tinker.__version__.split("."))
STEP = types.AdamParams(learning_rate=5e-3)


class State:
    pass


S = State()


def tokens_of(text):
    """builtin:tiny has a token for each byte."""
    return list(text.encode())


def datum_of(text, **inputs):
    tokens = tokens_of(text)
    arrays = {"target_tokens": np.array(tokens[1:], dtype=np.int64)}
    arrays.update({name: np.array(values, dtype=np.float32) for name, values in inputs.items()})
    loss_fn_inputs = {name: types.TensorData.from_numpy(array) for name, array in arrays.items()}
    return types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=loss_fn_inputs)


def supervised(text):
    return datum_of(text, weights=[1.0] * (len(text) - 1))


def logprobs_of(result):
    return [np.array(output["logprobs"].data, dtype=np.float64) for output in result.loss_fn_outputs]


def close(found, expected, tolerance=1e-3):
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance), f"{found} is not {expected}"


def ready(client):
    """0.38 hands out futures of clients, the others clients."""
    return client.result() if VERSION >= (0, 38) else client


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        for word in words:
            assert word in str(error), f"{word!r} is not in {error}"
        return error
    raise AssertionError(f"{kind} was not raised")


TEXTS = ["hello world", "hello there", "abc"]


def check_capabilities():
    S.service = tinker.ServiceClient(base_url=URL, api_key=KEY)
    models = S.service.get_server_capabilities().supported_models
    assert MODEL in [model.model_name for model in models], models


def check_training_lowers_the_loss():
    S.training = ready(S.service.create_lora_training_client(base_model=MODEL, rank=8, seed=7))
    losses = []
    for _ in range(8):
        passed = S.training.forward_backward([supervised(text) for text in TEXTS], "cross_entropy")
        S.training.optim_step(STEP)
        losses.append(passed.result().metrics["loss:sum"])
    assert losses[-1] < 0.8 * losses[0], losses


def check_info_and_tokenizer():
    info = S.training.get_info()
    assert info.is_lora and info.lora_rank == 8, info
    tokenizer = S.training.get_tokenizer()
    assert tokenizer.encode("abc", add_special_tokens=False) == tokens_of("abc")


def check_adapters_start_without_effect():
    base = ready(S.service.create_sampling_client(base_model=MODEL))
    fresh = ready(S.service.create_lora_training_client(base_model=MODEL, rank=2, seed=1, train_mlp=False))
    scored = logprobs_of(fresh.forward([supervised("hello world")], "cross_entropy").result())[0]
    close(scored, base.compute_logprobs(types.ModelInput.from_ints(tokens_of("hello world"))).result()[1:])


def reference(name, logprobs, old, advantages):
    """The losses of the protocol with the embedded server's defaults, one value a position."""
    ratio = np.exp(logprobs - old)
    clipped = np.clip(ratio, 0.8, 1.2)
    if name == "importance_sampling":
        return -ratio * advantages
    if name == "ppo":
        return -np.minimum(ratio * advantages, clipped * advantages)
    if name == "cispo":
        return -clipped * advantages * logprobs
    if name == "dro":
        return -(logprobs * advantages - 0.5 * 0.05 * (logprobs - old) ** 2)
    if name == "gspo":
        whole = np.exp(np.mean(logprobs - old))
        return -np.minimum(whole * advantages, np.clip(whole, 0.8, 1.2) * advantages)
    if name == "dppo":
        rise = np.exp(logprobs) - np.exp(old)
        masked = ((advantages > 0) & (rise > 0.2)) | ((advantages < 0) & (-rise > 0.2))
        return np.where(masked, 0.0, -ratio * advantages)
    raise AssertionError(name)


def check_every_loss_is_its_formula():
    text = "hello there"
    count = len(text) - 1
    now = logprobs_of(S.training.forward([supervised(text)], "cross_entropy").result())[0]
    random = np.random.default_rng(3)
    old = now + random.normal(size=count) * 0.3
    advantages = random.normal(size=count)
    datum = datum_of(text, logprobs=old, advantages=advantages)
    for name in ["importance_sampling", "ppo", "cispo", "dro", "gspo", "dppo"]:
        result = S.training.forward_backward([datum, datum], name).result()
        S.training.optim_step(types.AdamParams(learning_rate=0.0)).result()
        close(result.metrics["loss:sum"], 2 * reference(name, now, old, advantages).sum())
    config = {"clip_low_threshold": 0.99, "clip_high_threshold": 1.01}
    result = S.training.forward_backward([datum], "ppo", config).result()
    ratio = np.exp(now - old)
    expected = -np.minimum(ratio * advantages, np.clip(ratio, 0.99, 1.01) * advantages).sum()
    close(result.metrics["loss:sum"], expected)
    S.training.optim_step(types.AdamParams(learning_rate=0.0)).result()


def check_reinforcement_raises_the_probability_of_what_is_rewarded():
    client = ready(S.service.create_lora_training_client(base_model=MODEL, rank=4, seed=2))
    text = "xyz xyz"
    before = logprobs_of(client.forward([supervised(text)], "cross_entropy").result())[0]
    datum = datum_of(text, logprobs=before, advantages=[1.0] * len(before))
    for _ in range(4):
        client.forward_backward([datum], "importance_sampling")
        client.optim_step(STEP).result()
    after = logprobs_of(client.forward([supervised(text)], "cross_entropy").result())[0]
    assert after.sum() > before.sum() + 0.5, (before.sum(), after.sum())


def check_a_custom_loss_computed_by_the_client():
    client = ready(S.service.create_lora_training_client(base_model=MODEL, rank=4, seed=5))

    def squared(data, logprobs):
        loss = sum(((row + 1.0) ** 2).sum() for row in logprobs)
        return loss, {"squared": float(loss)}

    data = [supervised(text) for text in TEXTS]
    values = []
    for _ in range(6):
        result = client.forward_backward_custom(data, squared).result()
        client.optim_step(STEP).result()
        values.append(result.metrics["squared"])
    assert values[-1] < values[0], values


def check_many_datums_are_cut_and_merged():
    data = [supervised(TEXTS[i % 3]) for i in range(1100)]
    result = S.training.forward(data, "cross_entropy").result()
    rows = logprobs_of(result)
    assert len(rows) == 1100
    close(rows[1099], rows[1], 1e-4)
    close(result.metrics["loss:sum"], -sum(row.sum() for row in rows), 1e-3)


def check_samples_of_saved_weights():
    path = S.training.save_weights_for_sampler("first").result().path
    S.sampling = ready(S.service.create_sampling_client(model_path=path))
    prompt = types.ModelInput.from_ints(tokens_of("hello "))

    def sample(seed, **more):
        params = types.SamplingParams(max_tokens=8, seed=seed, temperature=1.0, **more)
        return S.sampling.sample(prompt, num_samples=2, sampling_params=params).result().sequences

    first, again, other = sample(11), sample(11), sample(99)
    assert [list(s.tokens) for s in first] == [list(s.tokens) for s in again]
    assert [list(s.tokens) for s in first] != [list(s.tokens) for s in other]
    assert list(first[1].tokens) == list(sample(12)[0].tokens), "sample i has seed + i"
    assert all(len(s.logprobs) == len(s.tokens) for s in first)
    params = types.SamplingParams(max_tokens=8, temperature=0.0, stop=["o"])
    stopped = S.sampling.sample(prompt, num_samples=1, sampling_params=params).result().sequences[0]
    assert stopped.stop_reason in ("stop", "length")


def check_prompt_logprobs_are_those_of_training():
    text = "hello world"
    scored = S.sampling.compute_logprobs(types.ModelInput.from_ints(tokens_of(text))).result()
    trained = logprobs_of(S.training.forward([supervised(text)], "cross_entropy").result())[0]
    assert scored[0] is None and len(scored) == len(text)
    close(scored[1:], trained)
    params = types.SamplingParams(max_tokens=1)
    prompt = types.ModelInput.from_ints(tokens_of(text))
    result = S.sampling.sample(
        prompt, num_samples=1, sampling_params=params, include_prompt_logprobs=True, topk_prompt_logprobs=3
    ).result()
    rows = result.topk_prompt_logprobs
    assert rows[0] is None and all(len(row) == 3 for row in rows[1:])
    assert all(row[0][1] >= row[1][1] >= row[2][1] for row in rows[1:])


def check_newer_sampling_fields():
    if VERSION < (0, 38):
        return
    text = "hello world"
    prompt = types.ModelInput.from_ints(tokens_of(text))
    targets = np.array([[token, -1] for token in tokens_of(text)[1:]], dtype=np.int64)
    result = S.sampling.sample(
        prompt,
        num_samples=2,
        sampling_params=types.SamplingParams(max_tokens=4, seed=1),
        include_prompt_logprobs=True,
        prompt_logprobs_last_n=3,
        topk_sample_logprobs=2,
        prompt_alt_tokens_k=3,
        target_prompt_logprobs=types.TensorData.from_numpy(targets),
    ).result()
    assert [value is None for value in result.prompt_logprobs] == [True] * 8 + [False] * 3
    scored = result.target_prompt_logprobs.to_numpy()
    assert scored.shape == (10, 2) and np.all(scored[:, 1] == 0)
    close(scored[-3:, 0], result.prompt_logprobs[-3:])
    assert result.prompt_alt_tokens.tokens.to_numpy().shape == (10, 3)
    for sequence in result.sequences:
        assert sequence.sequence_id
        assert len(sequence.topk_logprobs) == len(sequence.tokens)
        assert all(row[0][1] >= row[1][1] for row in sequence.topk_logprobs)


def check_snapshots_do_not_move_with_training():
    prompt = types.ModelInput.from_ints(tokens_of("hello world"))
    before = S.sampling.compute_logprobs(prompt).result()
    S.training.forward_backward([supervised(text) for text in TEXTS], "cross_entropy")
    S.training.optim_step(STEP).result()
    assert S.sampling.compute_logprobs(prompt).result() == before
    unnamed = ready(S.training.save_weights_and_get_sampling_client())
    assert unnamed.compute_logprobs(prompt).result() != before


def check_saved_state_goes_on_exactly():
    data = [supervised(text) for text in TEXTS]
    S.state = S.training.save_state("middle").result().path
    expected = []
    for _ in range(3):
        expected.append(S.training.forward_backward(data, "cross_entropy").result().metrics["loss:sum"])
        S.training.optim_step(STEP).result()
    resumed = ready(S.service.create_training_client_from_state_with_optimizer(S.state))
    found = []
    for _ in range(3):
        found.append(resumed.forward_backward(data, "cross_entropy").result().metrics["loss:sum"])
        resumed.optim_step(STEP).result()
    assert found == expected, (found, expected)
    weights_only = ready(S.service.create_training_client_from_state(S.state))
    close(weights_only.forward(data, "cross_entropy").result().metrics["loss:sum"], expected[0], 1e-5)


def check_runs_and_checkpoints():
    rest = S.service.create_rest_client()
    run_id = S.state.removeprefix("tinker://").split("/")[0]
    run = rest.get_training_run(run_id).result()
    assert run.is_lora and run.base_model == MODEL, run
    runs = rest.list_training_runs(limit=50).result().training_runs
    assert run_id in [found.training_run_id for found in runs]
    checkpoints = rest.list_checkpoints(run_id).result().checkpoints
    assert {"weights/middle", "sampler_weights/first"} <= {found.checkpoint_id for found in checkpoints}, checkpoints
    info = rest.get_weights_info_by_tinker_path(S.state).result()
    assert info.base_model == MODEL and info.lora_rank == 8, info
    rest.publish_checkpoint_from_tinker_path(S.state).result()
    rest.set_checkpoint_ttl_from_tinker_path(S.state, 7200).result()
    mine = [found for found in rest.list_user_checkpoints().result().checkpoints if found.tinker_path == S.state][0]
    assert mine.public and mine.expires_at is not None, mine
    rest.unpublish_checkpoint_from_tinker_path(S.state).result()
    session = rest.get_session(run_id.split(":")[0]).result()
    assert run_id in session.training_run_ids, session
    assert run_id.split(":")[0] in rest.list_sessions(limit=100).result().sessions
    if hasattr(rest, "get_checkpoint_archive_url_from_tinker_path"):
        read_archive(rest.get_checkpoint_archive_url_from_tinker_path(S.state).result().url)
    rest.delete_checkpoint_from_tinker_path(S.state).result()
    left = rest.list_checkpoints(run_id).result().checkpoints
    assert "weights/middle" not in [found.checkpoint_id for found in left]


def read_archive(url):
    import io
    import tarfile
    import urllib.request

    with urllib.request.urlopen(url) as answer:
        names = tarfile.open(fileobj=io.BytesIO(answer.read())).getnames()
    assert "adapter_model.safetensors" in names, names


def check_weights_for_elsewhere():
    rest = S.service.create_rest_client()
    if not hasattr(rest, "copy_weights"):
        return
    import urllib.request

    saved = S.training.save_weights_external("elsewhere").result()
    answer = rest.get_external_weights_urls(saved.path).result()
    sizes = [len(urllib.request.urlopen(url).read()) for url in answer.urls.values()]
    assert "adapter_model.safetensors" in answer.urls and min(sizes) > 0, (answer, sizes)
    rest.delete_checkpoint_from_tinker_path(saved.path).result()
    state = S.training.save_state("to-copy").result().path
    copy = rest.copy_weights(state, "another-project").result()
    assert copy != state and copy.endswith("/weights/to-copy"), copy
    resumed = ready(S.service.create_training_client_from_state(copy))
    data = [supervised(text) for text in TEXTS]
    losses = [client.forward(data, "cross_entropy").result().metrics["loss:sum"] for client in (S.training, resumed)]
    assert losses[0] == losses[1], losses


def check_several_targets_a_position():
    import numpy

    text = supervised(TEXTS[0])
    targets = numpy.array(text.loss_fn_inputs["target_tokens"].data)
    length = len(targets)
    wide = types.Datum(
        model_input=text.model_input,
        loss_fn_inputs={
            "target_tokens": types.TensorData.from_numpy(numpy.stack([targets, targets[::-1]], axis=1)),
            "weights": types.TensorData.from_numpy(numpy.full((length, 2), 0.5, dtype=numpy.float32)),
        },
    )
    found = S.training.forward([wide], "cross_entropy").result().loss_fn_outputs[0]["logprobs"]
    plain = S.training.forward([text], "cross_entropy").result().loss_fn_outputs[0]["logprobs"]
    assert list(found.shape) == [length, 2], found.shape
    for i in range(length):
        close(found.data[2 * i], plain.data[i], 1e-5)


def check_sessions_are_found():
    rest = S.service.create_rest_client()
    if not hasattr(rest, "search_sessions"):
        return
    page = rest.search_sessions(types.SessionSearchRequest(limit=1)).result()
    assert len(page.sessions) == 1 and page.sessions[0].status is not None, page
    none = rest.search_sessions(types.SessionSearchRequest(display_name="no such session")).result()
    assert none.sessions == []


def check_bad_requests_are_refused_with_a_sentence():
    good = supervised("abc")
    wrong_length = datum_of("abc", weights=[1.0])
    beyond = types.Datum(
        model_input=types.ModelInput.from_ints([1, 2]),
        loss_fn_inputs={"target_tokens": types.TensorData.from_numpy(np.array([2, 9999], dtype=np.int64))},
    )
    not_finite = datum_of("abc", weights=[1.0, float("nan")])
    client = ready(S.service.create_lora_training_client(base_model=MODEL, rank=2))

    def submit(data, *rest):
        return lambda: client.forward_backward(data, *rest).result()

    error = tinker.APIStatusError
    raises(error, submit([good, wrong_length], "cross_entropy"), "Datum 1", "weights")
    raises(error, submit([beyond], "cross_entropy"), "Datum 0", "target_tokens")
    raises(error, submit([good], "cross_entropy", {"clip": 1.0}), "no options")
    # What was refused has left nothing behind, and nothing waits for it.
    assert submit([good], "cross_entropy")().metrics["loss:sum"] > 0
    client.optim_step(STEP).result()
    # Last: 0.24 sends JSON, which has no NaN, so that its own encoder refuses and a number of the order is lost.
    raises(error if VERSION >= (0, 25) else ValueError, submit([not_finite], "cross_entropy"))
    raises(error, lambda: ready(S.service.create_lora_training_client(base_model="Qwen/Qwen3-8B", rank=2)), MODEL)
    raises(error, lambda: ready(S.service.create_lora_training_client(base_model=MODEL, rank=4096)), "rank")
    empty = types.ModelInput.from_ints([])
    params = types.SamplingParams(max_tokens=1)
    raises(error, lambda: S.sampling.sample(empty, num_samples=1, sampling_params=params).result(), "empty")
    raises(Exception, lambda: ready(S.service.create_sampling_client(model_path="tinker://x/sampler_weights/y")))


def check_closing():
    if hasattr(S.service, "close"):
        S.service.close("success").result()


def main():
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        started = time.monotonic()
        try:
            check()
            outcome = {"ok": True}
        except Exception:
            outcome = {"ok": False, "error": traceback.format_exc()}
        line = {"check": name.removeprefix("check_"), "seconds": round(time.monotonic() - started, 2), **outcome}
        print(json.dumps(line), flush=True)


main()
