"""Asks the server for the answer of another model: one CALL, and what its RESULT frames become. Used by InferenceRequest;
a refusal or failure is a response with an error, never an exception."""
import json
from typing import Any, Callable, Dict, Optional

from nereid_host.call_frame import DATATYPE_OF_NAME, CallResult, Payload, plain_parameters
from nereid_host.response import ErrorCode, InferenceResponse, TritonError
from nereid_host.response_iterator import ResponseIterator, ResponseStream, StreamControl
from nereid_host.runtime import runtime
from nereid_host.tensor import Tensor

OnResponse = Callable[[InferenceResponse], None]

# Triton loses the codes of models on the way back to the one that asked. These tell what became of the call itself.
_KEPT_CODES = ("CANCELLED", "UNAVAILABLE")


class OneResponse:
    """The response of a call that has one; `on_response` is called once, when the call is over."""

    def __init__(self, on_response: OnResponse) -> None:
        self._on_response = on_response
        self._response: Optional[InferenceResponse] = None

    def on_result(self, result: CallResult) -> None:
        if self._response is None and (result.response is not None or result.error is not None):
            self._response = response_of(result)
        if result.is_final:
            self._on_response(self._response or error_response("Unexpected empty response."))


class FirstResponse:
    """A call that may have many responses: `on_iterator` is called once, with the first of them, as in Triton."""

    def __init__(self, control: StreamControl, on_iterator: Callable[[ResponseIterator], None]) -> None:
        self._stream = ResponseStream(control)
        self._on_iterator: Optional[Callable[[ResponseIterator], None]] = on_iterator

    def on_result(self, result: CallResult) -> None:
        # A final result may be empty, and so is then the last response.
        self._stream.put(response_of(result), result.is_final)
        on_iterator, self._on_iterator = self._on_iterator, None
        if on_iterator is not None:
            on_iterator(ResponseIterator(self._stream))


def call_for_one(
    message: Dict[str, Any], payload: Payload, on_response: OnResponse, is_waited_for: bool = False
) -> Callable[[], None]:
    """The answer cancels the call."""
    calls = runtime.calls
    call_id = calls.next_id()
    calls.start(call_id, {**message, "isStream": False}, payload, OneResponse(on_response).on_result, is_waited_for)
    return lambda: calls.cancel(call_id)


def call_for_many(
    message: Dict[str, Any],
    payload: Payload,
    on_iterator: Callable[[ResponseIterator], None],
    is_waited_for: bool = False,
) -> Callable[[], None]:
    """The answer cancels the call."""
    calls = runtime.calls
    call_id = calls.next_id()
    control = StreamControl(
        cancel=lambda: calls.cancel(call_id), set_paused=lambda is_paused: calls.set_paused(call_id, is_paused)
    )
    first = FirstResponse(control, on_iterator)
    calls.start(call_id, {**message, "isStream": True}, payload, first.on_result, is_waited_for)
    return control.cancel


def response_of(result: CallResult) -> InferenceResponse:
    if result.error is not None:
        code, message = result.error
        return InferenceResponse.received([], TritonError(message, ErrorCode[code if code in _KEPT_CODES else "INTERNAL"]), "")
    if result.response is None:
        return InferenceResponse.received([], None, "")
    tensors = [_tensor_of(output, result.payload) for output in result.response["outputs"]]
    parameters = plain_parameters(result.response["parameters"])
    text = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"))
    return InferenceResponse.received(tensors, None, text)


def error_response(message: str) -> InferenceResponse:
    return InferenceResponse.received([], TritonError(message), "")


def _tensor_of(output: Dict[str, Any], payload: Any) -> Tensor:
    start = output["offset"]
    data = None if payload is None else payload[start : start + output["byteLength"]]
    return Tensor.received(output["name"], DATATYPE_OF_NAME[output["datatype"]], tuple(output["shape"]), data)
