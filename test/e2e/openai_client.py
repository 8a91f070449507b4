"""Drives the OpenAI API of a server with the official openai package: chat, streams, tools, completions, embeddings, errors."""
import json
import sys

import openai
from openai import AsyncOpenAI, OpenAI

from checks import run_checks

SAY = [{"role": "user", "content": "say: hello big world"}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'


def client_of(url):
    return OpenAI(base_url=f"{url}/v1", api_key="sk-test", max_retries=0)


def check_models(url):
    client = client_of(url)
    assert [model.id for model in client.models.list()] == [
        "contract", "contract:pirate", "shouter", "talker", "templated",
    ]
    assert client.models.retrieve("contract:pirate").id == "contract:pirate"


def check_chat(url):
    answer = client_of(url).chat.completions.create(model="talker", messages=SAY, max_tokens=2, seed=3)
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert answer.choices[0].message.content == "hello big"
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 2


def check_chat_stream(url):
    stream = client_of(url).chat.completions.create(
        model="talker", messages=SAY, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "hello big world"
    assert chunks[-1].usage.completion_tokens == 3


def check_tools(url):
    messages = [{"role": "user", "content": f"say: {CALL} {CALL}"}]
    answer = client_of(url).chat.completions.create(model="templated", messages=messages, tools=TOOLS)
    calls = answer.choices[0].message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"a": 1}, {"a": 1}]
    assert answer.choices[0].finish_reason == "tool_calls"
    with client_of(url).chat.completions.stream(model="templated", messages=messages, tools=TOOLS) as stream:
        final = stream.get_final_completion()
    assert [call.function.name for call in final.choices[0].message.tool_calls] == ["add", "add"]


def check_completions(url):
    client = client_of(url)
    answer = client.completions.create(model="talker", prompt=["say: a", "say: b c"], n=2)
    assert [choice.text for choice in answer.choices] == ["a", "a", "b c", "b c"]
    stream = client.completions.create(model="talker", prompt="say: b c", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "b c"


def check_logprobs(url):
    answer = client_of(url).chat.completions.create(
        model="contract", messages=SAY, logprobs=True, top_logprobs=2, extra_body={"return_timings": True}
    )
    entry = answer.choices[0].logprobs.content[0]
    assert (entry.logprob, entry.top_logprobs[1].token) == (-0.5, "other")
    assert answer.usage.prompt_tokens_details.cached_tokens == 4
    assert answer.timings == {"prompt_ms": 1.5}


def check_embeddings(url):
    # The package asks for base64 and decodes it.
    answer = client_of(url).embeddings.create(model="contract", input=["abc", "de"])
    assert [item.embedding for item in answer.data] == [[3, 0.5], [2, 0.5]]


def check_errors(url):
    client = client_of(url)
    for call, kind, code, param in [
        (lambda: client.models.retrieve("no"), openai.NotFoundError, "model_not_found", "model"),
        (
            lambda: client.chat.completions.create(model="no", messages=SAY),
            openai.NotFoundError, "model_not_found", "model",
        ),
        (
            lambda: client.chat.completions.create(model="talker", messages=SAY, temperature=3),
            openai.BadRequestError, None, "temperature",
        ),
        (
            lambda: client.chat.completions.create(
                model="talker", messages=[{"role": "user", "content": "say: fail!"}]
            ),
            openai.InternalServerError, None, None,
        ),
    ]:
        try:
            call()
        except kind as error:
            assert (error.code, error.param) == (code, param), error
        else:
            raise AssertionError(f"no {kind}")


def check_error_in_a_stream(url):
    stream = client_of(url).chat.completions.create(
        model="talker", messages=[{"role": "user", "content": "say: a fail! b"}], stream=True
    )
    text = ""
    try:
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
    except openai.APIError as error:
        assert "told to fail" in str(error)
    else:
        raise AssertionError("no error")
    assert text == "a"


async def check_sixteen_streams_at_once(url):
    import asyncio

    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="sk-test") as client:

        async def one(i):
            messages = [{"role": "user", "content": f"say: number wait:50 {i}"}]
            stream = await client.chat.completions.create(model="talker", messages=messages, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        texts = await asyncio.gather(*[one(i) for i in range(16)])
    assert texts == [f"number wait:50 {i}" for i in range(16)], texts


if __name__ == "__main__":
    run_checks(sys.modules[__name__], sys.argv[1])
