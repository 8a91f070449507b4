"""InferenceResponse and TritonError: what a model answers to one request."""
import enum
import json
from typing import Any, Dict, List, Optional

from nereid_host.model_exception import TritonModelException
from nereid_host.status import STATUS_CODES
from nereid_host.tensor import Tensor



class _NamedCode(enum.IntEnum):
    """Models write codes into texts; there Triton gives the name, not the number."""

    def __str__(self) -> str:
        return "%s.%s" % (type(self).__name__, self.name)


# The name of the type is Triton's, which models see in such a text.
ErrorCode = _NamedCode("__ErrorCode", [(name, number) for number, name in enumerate(STATUS_CODES)])


class TritonError:
    UNKNOWN = ErrorCode["UNKNOWN"]
    INTERNAL = ErrorCode["INTERNAL"]
    NOT_FOUND = ErrorCode["NOT_FOUND"]
    INVALID_ARG = ErrorCode["INVALID_ARG"]
    UNAVAILABLE = ErrorCode["UNAVAILABLE"]
    UNSUPPORTED = ErrorCode["UNSUPPORTED"]
    ALREADY_EXISTS = ErrorCode["ALREADY_EXISTS"]
    CANCELLED = ErrorCode["CANCELLED"]

    def __init__(self, message: str, code: Any = ErrorCode["INTERNAL"]) -> None:
        if not isinstance(message, str) or not isinstance(code, ErrorCode):
            raise TypeError(
                "TritonError() takes a text and a code such as TritonError.INTERNAL, got %r and %r"
                % (type(message), type(code))
            )
        self._message = message
        self._code = code

    def code(self) -> Any:
        return self._code

    def message(self) -> str:
        return self._message


class InferenceResponse:
    # As error texts of Triton name it.
    __module__ = "c_python_backend_utils"

    def __init__(
        self,
        output_tensors: Optional[List[Tensor]] = None,
        error: Optional[TritonError] = None,
        parameters: Optional[Dict[str, Any]] = None,
    ) -> None:
        self._output_tensors = [] if output_tensors is None else list(output_tensors)
        for tensor in self._output_tensors:
            if tensor is None:
                raise TritonModelException("Output tensor for inference response should not be empty.")
            if not isinstance(tensor, Tensor):
                raise TypeError("output_tensors must be a list of Tensor, found %r" % type(tensor))
        if error is not None and not isinstance(error, TritonError):
            raise TypeError("error must be a TritonError, found %r" % type(error))
        self._error = error
        self._parameters = parameters_text(parameters)

    @classmethod
    def received(cls, output_tensors: List[Tensor], error: Optional[TritonError], parameters: str) -> "InferenceResponse":
        """What another model answered; `parameters` is JSON text."""
        response = cls.__new__(cls)
        response._output_tensors = output_tensors
        response._error = error
        response._parameters = parameters
        return response

    def output_tensors(self) -> List[Tensor]:
        return self._output_tensors

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> Optional[TritonError]:
        return self._error

    def parameters(self) -> str:
        """JSON text."""
        return self._parameters


def parameters_text(parameters: Optional[Dict[str, Any]]) -> str:
    """The parameters that a model gives, checked, as JSON text."""
    if parameters is None:
        return "{}"
    if not isinstance(parameters, dict):
        # The name of the C++ type is what Triton says.
        raise TritonModelException("Expect N8pybind114dictE, got %s" % type(parameters))
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise TritonModelException("Expect parameters keys to have type str, found type %s" % type(name))
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type %s" % type(value)
            )
    return json.dumps(parameters)
