"""The official OpenAI client against an endpoint: python openai_client.py BASE_URL. Prints one JSON line for each check."""
import asyncio, json, sys, traceback
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
ASK = {"model": "agent", "messages": [{"role": "user", "content": "Hello"}]}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}


def check_models():
    assert [m.id for m in client.models.list()] == ["agent"]


def check_answer():
    completion = client.chat.completions.create(**ASK, temperature=0, seed=3, max_tokens=400)
    assert completion.choices[0].message.content == "Grüezi 🙂 " * 9, completion
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


def check_stream():
    stream = client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "Grüezi 🙂 " * 9, text
    assert len(chunks) > 5 and chunks[-1].usage.completion_tokens > 0


def check_stream_helper():
    with client.chat.completions.stream(**ASK, n=2, stop=["🙂"]) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in events and "content.done" in events, events
    assert [c.message.content for c in final.choices] == ["Grüezi "] * 2, final


def check_logprobs():
    completion = client.chat.completions.create(**ASK, logprobs=True, max_tokens=5)
    content = completion.choices[0].logprobs.content
    assert bytes(b for token in content for b in token.bytes).decode() == "Grüe", content
    assert all(token.logprob == -0.5 for token in content)
    assert completion.choices[0].finish_reason == "length"


def check_tools():
    messages = [{"role": "user", "content": "call"}]
    for stream in [False, True]:
        if stream:
            with client.chat.completions.stream(model="agent", messages=messages, tools=[TOOL]) as helper:
                choice = helper.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(model="agent", messages=messages, tools=[TOOL]).choices[0]
        assert choice.finish_reason == "tool_calls"
        [call] = choice.message.tool_calls
        assert call.function.name == "weather" and json.loads(call.function.arguments) == {"city": "Zürich"}


def check_errors():
    try:
        client.chat.completions.create(model="other", messages=ASK["messages"])
        raise AssertionError("no error")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found" and error.param == "model", error
    try:
        client.chat.completions.create(**ASK, presence_penalty=1)
        raise AssertionError("no error")
    except openai.BadRequestError as error:
        assert error.param == "presence_penalty", error


def check_async():
    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=sys.argv[1], api_key="none", max_retries=0) as many:
            return await asyncio.gather(*[many.chat.completions.create(**ASK) for _ in range(30)])

    completions = asyncio.run(all_of_them())
    assert {c.choices[0].message.content for c in completions} == {"Grüezi 🙂 " * 9}


for name, check in list(globals().items()):
    if name.startswith("check_"):
        outcome = {"check": name.removeprefix("check_"), "ok": True}
        try:
            check()
        except BaseException:
            outcome = {**outcome, "ok": False, "error": traceback.format_exc()}
        print(json.dumps(outcome), flush=True)
