"""InferenceRequest and its response sender, as a model receives them in `execute`."""
import json
from typing import Any, Dict, List, Optional, Set

from nereid_host.answer import Answer
from nereid_host.response import InferenceResponse
from nereid_host.tensor import Tensor


class InferenceResponseSender:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def send(self, response: Optional[InferenceResponse] = None, flags: int = 0) -> None:
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError("send() takes an InferenceResponse, found %r" % type(response))
        self._answer.send(response, flags)

    def is_cancelled(self) -> bool:
        return self._answer.is_cancelled


class InferenceRequest:
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

    def set_flags(self, flags: int) -> None:
        self._flags = flags

    def timeout(self) -> int:
        """Microseconds; 0 when there is none."""
        return self._read_info().get("timeoutUs", 0)

    def parameters(self) -> str:
        """JSON text, empty when there are none."""
        parameters = self._read_info().get("parameters")
        return json.dumps(parameters, ensure_ascii=False, separators=(",", ":")) if parameters else ""

    def requested_output_names(self) -> Set[str]:
        return set(self._answer.requested_output_names())

    def get_response_sender(self) -> InferenceResponseSender:
        if self._sender is None:
            self._sender = InferenceResponseSender(self._answer)
        return self._sender

    def is_cancelled(self) -> bool:
        return self._answer.is_cancelled

    def _read_info(self) -> Dict[str, Any]:
        """Most models look at nothing but tensors, so the JSON is parsed for those that do."""
        if self._info is None:
            self._info = json.loads(self._info_text) if self._info_text else {}
        return self._info
