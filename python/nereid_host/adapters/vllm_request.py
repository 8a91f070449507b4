"""Requests to the backend `vllm`: inputs to what the engine is asked, outputs of the engine to tensors. Names and rules
are those of Triton's vllm_backend. Pure, and without vLLM; vllm_model.py calls it."""
import json
import typing
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from nereid_host.adapters.text_requests import flag_of, scalar_of, tensor_spec, text_tensor, values_of
from nereid_host.tensor import Tensor

_FLAGS = ("finish_reason", "cumulative_logprob", "logprobs", "num_input_tokens", "num_output_tokens")

INPUTS = [
    # Optional, other than in Triton: `chat_request` and `prompt_token_ids` take its place.
    tensor_spec("text_input", "TYPE_STRING", [1], True),
    tensor_spec("image", "TYPE_STRING", [-1], True),
    tensor_spec("stream", "TYPE_BOOL", [1], True),
    tensor_spec("sampling_parameters", "TYPE_STRING", [1], True),
    tensor_spec("exclude_input_in_output", "TYPE_BOOL", [1], True),
    *[tensor_spec("return_%s" % name, "TYPE_BOOL", [1], True) for name in _FLAGS],
    tensor_spec("embedding_request", "TYPE_STRING", [1], True),
    tensor_spec("chat_request", "TYPE_STRING", [1], True),
    tensor_spec("prompt_token_ids", "TYPE_INT32", [-1], True),
]
OUTPUTS = [
    tensor_spec("text_output", "TYPE_STRING", [-1]),
    tensor_spec("finish_reason", "TYPE_STRING", [-1]),
    tensor_spec("cumulative_logprob", "TYPE_FP32", [-1]),
    tensor_spec("logprobs", "TYPE_STRING", [-1]),
    tensor_spec("num_input_tokens", "TYPE_UINT32", [1]),
    tensor_spec("num_output_tokens", "TYPE_UINT32", [-1]),
]

# Words of Triton.
_NO_INPUT_IN_STREAM = "When streaming, `exclude_input_in_output` = False is not allowed."


class GenerateCall(NamedTuple):
    # Of these exactly one: a text, tokens, or the object of a chat whose template is still to be rendered.
    text: Optional[str]
    token_ids: Optional[List[int]]
    chat: Optional[Dict[str, Any]]
    # Base64 texts.
    images: List[str]
    is_stream: bool
    is_input_prepended: bool
    # Names of outputs beside text_output.
    extra_outputs: List[str]


def read_generate(request: Any) -> GenerateCall:
    text = scalar_of(request, "text_input")
    tokens = values_of(request, "prompt_token_ids")
    chat = scalar_of(request, "chat_request")
    if [text, tokens, chat].count(None) != 2 if tokens is None else (text is not None or chat is not None):
        raise ValueError("exactly one of text_input, chat_request and prompt_token_ids must be given")
    is_stream = flag_of(request, "stream")
    is_excluded = scalar_of(request, "exclude_input_in_output")
    # Left out, it depends on the stream; false in a stream is refused.
    is_prepended = not is_stream if is_excluded is None else not is_excluded
    if is_prepended and is_stream:
        raise ValueError(_NO_INPUT_IN_STREAM)
    images = values_of(request, "image")
    return GenerateCall(
        text=text,
        token_ids=None if tokens is None else [int(token) for token in tokens],
        chat=None if chat is None else json.loads(chat),
        images=[] if images is None else [image.decode("utf-8") for image in images],
        is_stream=is_stream,
        is_input_prepended=is_prepended,
        extra_outputs=[name for name in _FLAGS if flag_of(request, "return_%s" % name)],
    )


def read_parameters(request: Any) -> Dict[str, Any]:
    """The tensor, or without it the parameters of the request."""
    text = scalar_of(request, "sampling_parameters")
    parameters = json.loads(request.parameters() if text is None else text)
    if not isinstance(parameters, dict):
        raise ValueError("sampling_parameters must be a JSON object")
    return parameters


def typed_parameters(parameters: Dict[str, Any], hints: Dict[str, Any]) -> Dict[str, Any]:
    """Values as the fields want them: request parameters may be texts. `hints` are the types of the fields."""
    typed: Dict[str, Any] = {}
    for name, value in parameters.items():
        kind = _plain_type(hints.get(name))
        if value is None or kind is None or (isinstance(value, kind) and not isinstance(value, bool)):
            typed[name] = value
        elif kind is bool:
            typed[name] = value.strip().lower() == "true" if isinstance(value, str) else bool(value)
        else:
            typed[name] = kind(value)
    return typed


def _plain_type(hint: Any) -> Any:
    """int, float, bool or str, of a field that may also be None; None for any other field."""
    choices = [choice for choice in typing.get_args(hint) if choice is not type(None)] or [hint]
    return choices[0] if len(choices) == 1 and choices[0] in (int, float, bool, str) else None


class TextOutputs:
    """What of a request's answer was sent, and the tensors of what comes next.

    The engine is asked for deltas in a stream, and else for the end alone. In a stream with several choices it tells
    only of those with news; the element of any other is empty.
    """

    def __init__(self, call: GenerateCall, choice_count: int, is_openai_logprobs: bool) -> None:
        self._call = call
        self._count = choice_count
        self._is_openai = is_openai_logprobs
        self._finish_reasons = ["None"] * choice_count
        self._logprob_sums = [0.0] * choice_count

    def tensors_of(self, output: Any) -> List[Tensor]:
        """`output` is a RequestOutput of vLLM."""
        news: List[Any] = [None] * self._count
        for choice in output.outputs:
            news[choice.index] = choice
            self._finish_reasons[choice.index] = str(choice.finish_reason)
            if choice.cumulative_logprob is not None:
                self._logprob_sums[choice.index] = choice.cumulative_logprob
        prefix = (output.prompt or "") if self._call.is_input_prepended else ""
        tensors = [text_tensor("text_output", ["" if choice is None else prefix + choice.text for choice in news])]
        for name in self._call.extra_outputs:
            tensors.append(self._extra(name, news, output))
        return tensors

    def _extra(self, name: str, news: Sequence[Any], output: Any) -> Tensor:
        if name == "finish_reason":
            return text_tensor(name, self._finish_reasons)
        if name == "cumulative_logprob":
            return Tensor(name, np.array(self._logprob_sums, np.float32))
        if name == "logprobs":
            return text_tensor(name, [self._logprobs_text(choice) for choice in news])
        if name == "num_input_tokens":
            return Tensor(name, np.array([len(output.prompt_token_ids or ())], np.uint32))
        return Tensor(name, np.array([0 if choice is None else len(choice.token_ids) for choice in news], np.uint32))

    def _logprobs_text(self, choice: Any) -> str:
        if choice is None:
            return "[]"
        if choice.logprobs is None:
            return "null"
        if self._is_openai:
            return json.dumps([_openai_entry(id, at) for id, at in zip(choice.token_ids, choice.logprobs)])
        return json.dumps(
            [
                {
                    token_id: {"logprob": one.logprob, "rank": one.rank, "decoded_token": one.decoded_token}
                    for token_id, one in position.items()
                }
                for position in choice.logprobs
            ]
        )


def _openai_entry(token_id: int, position: Dict[int, Any]) -> Dict[str, Any]:
    def entry(id: int, one: Any) -> Dict[str, Any]:
        text = one.decoded_token or ""
        return {"token": text, "token_id": id, "logprob": one.logprob, "bytes": list(text.encode("utf-8"))}

    # The engine adds the chosen token to the wanted number of best ones.
    best = sorted(position.items(), key=lambda item: item[1].rank or 0)
    return {**entry(token_id, position[token_id]), "top": [entry(id, one) for id, one in best]}


class EmbedCall(NamedTuple):
    # Texts, or lists of tokens.
    inputs: List[Union[str, List[int]]]
    dimensions: Optional[int]


def read_embed(text: str) -> EmbedCall:
    """`text` is the JSON of embedding_request: {"input", "dimensions"?}, or Triton's {"input", "pooling_params"?}."""
    body = json.loads(text)
    given = body["input"]
    is_one = isinstance(given, str) or (len(given) > 0 and isinstance(given[0], int))
    dimensions = body.get("dimensions")
    if dimensions is None:
        dimensions = ((body.get("pooling_params") or {}).get("dimensions") or [None])[0]
    return EmbedCall([given] if is_one else list(given), dimensions)
