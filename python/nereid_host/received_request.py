"""The requests that a model is given in `execute`, and the response sender of each."""
import json
from operator import index
from typing import Any, Dict, List, NoReturn, Optional, Set

from nereid_host.answer import Answer
from nereid_host.model_exception import TritonModelException
from nereid_host.request import InferenceRequest
from nereid_host.request_options import InferenceTrace
from nereid_host.response import InferenceResponse
from nereid_host.tensor import Tensor

REQUEST_RELEASE_ALL = 1
REQUEST_RELEASE_RESCHEDULE = 2


class InferenceResponseSender:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def send(self, response: Optional[InferenceResponse] = None, flags: int = 0) -> None:
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError("send() takes an InferenceResponse, found %r" % type(response))
        self._answer.send(response, index(flags))

    def is_cancelled(self) -> bool:
        return self._answer.is_cancelled


class ReceivedRequest(InferenceRequest):
    def __init__(self, inputs: List[Tensor], info: bytes, answer: Answer) -> None:
        self._inputs = inputs
        self._info_text = info
        self._info: Optional[Dict[str, Any]] = None
        self._flags: Optional[int] = None
        self._answer = answer
        self._sender: Optional[InferenceResponseSender] = None

    def inputs(self) -> List[Tensor]:
        return self._inputs

    def request_id(self) -> str:
        return self._read_info().get("id", "")

    def correlation_id(self) -> Any:
        """An integer or a text; 0 when there is none."""
        return self._read_info().get("correlationId", 0)

    def flags(self) -> int:
        return self._read_info().get("flags", 0) if self._flags is None else self._flags

    def timeout(self) -> int:
        """Microseconds; 0 when there is none."""
        return self._read_info().get("timeoutUs", 0)

    def parameters(self) -> str:
        """JSON text."""
        return json.dumps(self._read_info().get("parameters", {}), ensure_ascii=False, separators=(",", ":"))

    def requested_output_names(self) -> Set[str]:
        return set(self._answer.requested_output_names())

    def trace(self) -> InferenceTrace:
        return InferenceTrace.of_request(self._answer.key, self._read_info().get("traceparent"))

    def get_response_sender(self) -> InferenceResponseSender:
        if self._sender is None:
            self._sender = InferenceResponseSender(self._answer)
        return self._sender

    def is_cancelled(self) -> bool:
        return self._answer.is_cancelled

    def set_release_flags(self, flags: int) -> None:
        # Other bits are taken without a word, as in Triton.
        self._answer.is_rescheduled = bool(flags & REQUEST_RELEASE_RESCHEDULE)

    def exec(self, decoupled: bool = False) -> NoReturn:
        raise TritonModelException("A received request cannot be executed; make an InferenceRequest for the model to call.")

    def async_exec(self, decoupled: bool = False) -> NoReturn:
        self.exec(decoupled)

    def _read_info(self) -> Dict[str, Any]:
        """Most models look at nothing but tensors, so the JSON is parsed for those that do."""
        if self._info is None:
            self._info = json.loads(self._info_text) if self._info_text else {}
        return self._info


# To the model both are one type, and code that looks at its name must find Triton's.
ReceivedRequest.__name__ = ReceivedRequest.__qualname__ = "InferenceRequest"
