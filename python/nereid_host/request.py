"""InferenceRequest: made by a model to call another one (business logic scripting). What a model receives in `execute` is
a ReceivedRequest, of the same type to the model."""
import json
from operator import index
from queue import SimpleQueue
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Set, Union

from nereid_host.call_frame import DATATYPE_NAMES, Payload, typed_parameters
from nereid_host.inference_call import call_for_many, call_for_one, error_response
from nereid_host.model_exception import TritonModelException
from nereid_host.parents import current_parents
from nereid_host.request_options import InferenceTrace, PreferredMemory
from nereid_host.response import InferenceResponse, parameters_text
from nereid_host.response_iterator import ResponseIterator
from nereid_host.runtime import RUNNING, runtime
from nereid_host.tensor import Tensor

Answered = Union[InferenceResponse, ResponseIterator]

_UINT32_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1
_INT64_MAX = 2**63 - 1
# What a JSON number holds exactly.
_JSON_INTEGER_MAX = 2**53 - 1


class _Call(NamedTuple):
    message: Dict[str, Any]
    payload: Payload


class InferenceRequest:
    def __init__(
        self,
        request_id: str = "",
        correlation_id: Union[int, str] = 0,
        inputs: Sequence[Optional[Tensor]] = None,  # type: ignore[assignment]
        requested_output_names: Sequence[str] = None,  # type: ignore[assignment]
        model_name: str = None,  # type: ignore[assignment]
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: Optional[PreferredMemory] = None,
        trace: Optional[InferenceTrace] = None,
        parameters: Optional[Dict[str, Any]] = None,
    ) -> None:
        """`inputs`, `requested_output_names` and `model_name` must be given; their order is Triton's."""
        _check_type("request_id", request_id, str)
        _check_type("model_name", model_name, str)
        _check_list("inputs", inputs, (Tensor, type(None)))
        _check_list("requested_output_names", requested_output_names, str)
        self._model_version = _integer("model_version", model_version, -_INT64_MAX - 1, _INT64_MAX)
        self._flags: Optional[int] = _integer("flags", flags, 0, _UINT32_MAX)
        self._timeout = _integer("timeout", timeout, 0, _UINT64_MAX)
        _check_type("preferred_memory", preferred_memory, (PreferredMemory, type(None)))
        _check_type("trace", trace, (InferenceTrace, type(None)))
        self._parameters = parameters_text(parameters)
        if not isinstance(correlation_id, (int, str)):
            raise TritonModelException("Correlation ID must be integer or string")
        if isinstance(correlation_id, int):
            correlation_id = _integer("correlation_id", int(correlation_id), 0, _UINT64_MAX)
        where = "for request with id '%s' and model name '%s' should not be empty." % (request_id, model_name)
        if any(tensor is None for tensor in inputs):
            raise TritonModelException("Input tensor %s" % where)
        if "" in requested_output_names:
            raise TritonModelException("Requested output name %s" % where)
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._inputs: List[Any] = list(inputs)
        self._requested_output_names = set(requested_output_names)
        self._model_name = model_name
        self._trace = InferenceTrace() if trace is None else trace

    def inputs(self) -> List[Tensor]:
        return self._inputs

    def request_id(self) -> str:
        return self._request_id

    def correlation_id(self) -> Any:
        return self._correlation_id

    def flags(self) -> int:
        return self._flags or 0

    def set_flags(self, flags: int) -> None:
        self._flags = index(flags)

    def timeout(self) -> int:
        """Microseconds."""
        return self._timeout

    def parameters(self) -> str:
        """JSON text."""
        return self._parameters

    def requested_output_names(self) -> Set[str]:
        return self._requested_output_names

    def trace(self) -> InferenceTrace:
        return self._trace

    def is_cancelled(self) -> bool:
        return False

    def get_response_sender(self) -> NoReturn:
        raise TritonModelException("A request that a model makes has no response sender; the one it received has.")

    def set_release_flags(self, flags: int) -> None:
        """Has no meaning for a request that a model makes; accepted as in Triton."""

    def exec(self, decoupled: bool = False) -> Answered:
        """Waits for the response, or with `decoupled` for the first of many."""
        call = self._to_call()
        answered: "SimpleQueue[Answered]" = SimpleQueue()
        if isinstance(call, InferenceResponse):
            return call
        begin: Any = call_for_many if decoupled else call_for_one
        begin(call.message, call.payload, answered.put, is_waited_for=True)
        return runtime.calls.wait_for(answered)

    def async_exec(self, decoupled: bool = False) -> "Any":
        """A future of the running event loop, with what `exec` returns; cancelling it cancels the call."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: "asyncio.Future[Answered]" = loop.create_future()

        def resolve(answered: Answered) -> None:
            if not future.done():
                future.set_result(answered)

        def on_answered(answered: Answered) -> None:
            try:
                loop.call_soon_threadsafe(resolve, answered)
            except RuntimeError:
                # The loop was closed: nobody waits.
                pass

        call = self._to_call()
        if isinstance(call, InferenceResponse):
            future.set_result(call)
            return future
        begin: Any = call_for_many if decoupled else call_for_one
        cancel = begin(call.message, call.payload, on_answered)
        future.add_done_callback(lambda done: cancel() if done.cancelled() else None)
        return future

    def _to_call(self) -> Union[_Call, InferenceResponse]:
        """The CALL, or the response that says what is wrong with it."""
        if runtime.phase != RUNNING or runtime.calls is None:
            raise TritonModelException("BLS is only supported during the 'execute' function.")
        parameters: Dict[str, Any] = json.loads(self._parameters)
        if not all(_is_parameter(value) for value in parameters.values()):
            return error_response(
                "Model %s - Error when running inference: Unsupported value type on parameters" % self._model_name
            )
        payload = Payload()
        message: Dict[str, Any] = {
            "kind": "infer",
            "model": self._model_name,
            "version": self._model_version,
            "id": self._request_id,
            "correlationId": _exact(self._correlation_id, lambda text: {"uint64": text}),
            "flags": self.flags(),
            "priority": 0,
            "timeoutUs": _exact(self._timeout, lambda text: text),
            "parameters": typed_parameters(parameters.items()),
            "requestedOutputs": sorted(self._requested_output_names),
            "inputs": [
                {
                    "name": tensor.name(),
                    "datatype": DATATYPE_NAMES[tensor.triton_dtype()],
                    "shape": tensor.shape(),
                    **payload.add(tensor.to_bytes()),
                }
                for tensor in self._inputs
            ],
        }
        parents = self._trace.parents or current_parents()
        if parents:
            message["parent"] = [{"batchId": batch_id, "request": request} for batch_id, request in parents]
        return _Call(message, payload)


def _is_parameter(value: Any) -> bool:
    return not isinstance(value, int) or -_INT64_MAX - 1 <= value <= _INT64_MAX


def _exact(value: Union[int, str], as_text: Any) -> Any:
    return as_text(str(value)) if isinstance(value, int) and value > _JSON_INTEGER_MAX else value


def _check_type(name: str, value: Any, types: Any) -> None:
    if not isinstance(value, types):
        raise TypeError("InferenceRequest(): %s must not be %r" % (name, type(value)))


def _check_list(name: str, values: Any, types: Any) -> None:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError("InferenceRequest(): %s must be a list, found %r" % (name, type(values)))
    for value in values:
        if not isinstance(value, types):
            raise TypeError("InferenceRequest(): %s must not hold %r" % (name, type(value)))


def _integer(name: str, value: Any, low: int, high: int) -> int:
    """Also of numpy's integers."""
    number = index(value)
    if not low <= number <= high:
        raise TypeError("InferenceRequest(): %s must be from %d to %d, found %r" % (name, low, high, value))
    return number
