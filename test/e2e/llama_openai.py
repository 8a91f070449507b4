"""Driver of llama-openai.test.ts: a llama model through the official openai package.

    llama_openai.py BASE_URL KEY     BASE_URL serves the llama model smol
"""
import asyncio
import json
import sys

import openai

from checks import run_checks

BASE_URL, KEY = sys.argv[1:]
QUESTION = [{"role": "user", "content": "How many days are in a week?"}]
TOOLS = [{"type": "function", "function": {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
                   "required": ["city"], "additionalProperties": False},
}}]
OPTIONS = {"model": "smol", "messages": QUESTION, "temperature": 0, "max_tokens": 16}


def client():
    return openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)


def check_chat():
    answer = client().chat.completions.create(**OPTIONS)
    assert answer.choices[0].message.content == "A week is approximately 7 days.", answer
    assert answer.choices[0].finish_reason == "stop"


def check_stream_with_usage():
    whole = client().chat.completions.create(**OPTIONS)
    chunks = list(client().chat.completions.create(**OPTIONS, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens and not chunks[-1].choices


def check_vllm_fields_in_the_extra_body():
    answer = client().chat.completions.create(**OPTIONS, extra_body={"guided_choice": ["Rome", "Oslo"]})
    assert answer.choices[0].message.content in ("Rome", "Oslo"), answer
    answer = client().chat.completions.create(**OPTIONS, extra_body={"ignore_eos": True, "min_tokens": 16})
    assert answer.usage.completion_tokens == 16


def check_a_named_tool():
    choice = {"type": "function", "function": {"name": "get_weather"}}
    options = {**OPTIONS, "max_tokens": 60}
    answer = client().chat.completions.create(**options, tools=TOOLS, tool_choice=choice)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "get_weather" and list(json.loads(call.function.arguments)) == ["city"]


def check_eight_at_once():
    async def run():
        async with openai.AsyncOpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0) as every:
            options = {**OPTIONS, "max_tokens": 8}
            return await asyncio.gather(*[every.chat.completions.create(**options) for _ in range(8)])
    answers = asyncio.run(run())
    assert len({answer.id for answer in answers}) == 8
    assert all("week" in answer.choices[0].message.content for answer in answers)


def check_a_stream_that_is_left():
    stream = client().chat.completions.create(**{**OPTIONS, "max_tokens": 500}, stream=True,
                                              extra_body={"ignore_eos": True})
    for _ in range(3):
        next(stream)
    stream.close()
    check_chat()


def check_errors():
    for options, error, param in [
        ({"top_p": 2}, openai.BadRequestError, "top_p"),
        ({"model": "none"}, openai.NotFoundError, "model"),
        ({"messages": []}, openai.BadRequestError, "messages"),
    ]:
        try:
            client().chat.completions.create(**{**OPTIONS, **options})
        except error as raised:
            assert raised.param == param, raised.param
        else:
            raise AssertionError(f"no error of {options}")


if __name__ == "__main__":
    run_checks(sys.modules["__main__"])
