"""The official OpenAI client and a real model behind an endpoint: python openai_model.py BASE_URL MODEL. Fails where an answer is not as promised."""
import math
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=300)
model = sys.argv[2]
ask = {"model": model, "messages": [{"role": "user", "content": "one"}], "temperature": 0, "max_tokens": 6}

assert model in [m.id for m in client.models.list()]

whole = client.chat.completions.create(**ask, logprobs=True)
(choice,) = whole.choices
assert choice.finish_reason in ("stop", "length"), whole
assert 1 <= whole.usage.completion_tokens <= 6 and whole.usage.prompt_tokens > 1, whole
spelled = b"".join(bytes(token.bytes) for token in choice.logprobs.content).decode(errors="replace")
assert spelled.startswith(choice.message.content), (spelled, choice.message.content)
assert all(-100 < token.logprob <= 0 and not math.isnan(token.logprob) for token in choice.logprobs.content), whole

chunks = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
assert streamed == choice.message.content, (streamed, choice.message.content)
assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens, chunks[-1]

two = client.chat.completions.create(**{**ask, "temperature": 1}, n=2, seed=7)
assert len(two.choices) == 2, two

# The same by another name, and a model that is not there.
assert client.chat.completions.create(**{**ask, "model": f"{model}@last"}).choices[0].finish_reason in ("stop", "length")
try:
    client.chat.completions.create(**{**ask, "model": "nobody"})
    raise AssertionError("a model that is not there answered")
except openai.NotFoundError:
    pass
print(choice.message.content)
