"""CALL and RESULT frames: what a model asks of the server, and the answers. The twin of src/instance/call-frame.ts.

The header is JSON; tensors and files lie in the payload, each at a multiple of 64, where the header says.
"""
import json
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from nereid_host.frames import Frame
from nereid_host.protocol import FRAME_CALL, align_up, encode_head

# DataType numbers to the names of the wire.
DATATYPE_NAMES: Dict[int, str] = {
    1: "BOOL",
    2: "UINT8",
    3: "UINT16",
    4: "UINT32",
    5: "UINT64",
    6: "INT8",
    7: "INT16",
    8: "INT32",
    9: "INT64",
    10: "FP16",
    11: "FP32",
    12: "FP64",
    13: "BYTES",
    14: "BF16",
}
DATATYPE_OF_NAME: Dict[str, int] = {name: number for number, name in DATATYPE_NAMES.items()}


class CallResult(NamedTuple):
    """One RESULT frame."""

    is_final: bool
    # Code and message.
    error: Optional[Tuple[str, str]]
    # As the header describes it, and the bytes of the frame.
    response: Optional[Dict[str, Any]]
    payload: Any
    # Of a readiness or metric call.
    value: Any


class Payload:
    """Gathers what goes into the payload of one CALL, without copying it."""

    def __init__(self) -> None:
        self.pieces: List[Any] = []
        self._position = 0

    def add(self, data: Any) -> Dict[str, int]:
        """`data` is bytes or an array of bytes; the answer says in the header where it lies."""
        offset = align_up(self._position)
        self.pieces.append(bytes(offset - self._position))
        self.pieces.append(data)
        self._position = offset + len(data)
        return {"offset": offset, "byteLength": len(data)}

    @property
    def byte_length(self) -> int:
        return self._position


def encode_call_frame(message: Dict[str, Any], payload: Optional[Payload] = None) -> List[Any]:
    # NaN is no JSON: better an exception in the model than a frame that the server cannot read.
    header = json.dumps(message, allow_nan=False).encode()
    if payload is None:
        return [encode_head(FRAME_CALL, header, 0)]
    length = payload.byte_length
    return [encode_head(FRAME_CALL, header, length), *payload.pieces, bytes(align_up(length) - length)]


def decode_result_frame(frame: Frame) -> Tuple[int, CallResult]:
    """The id of the call and one result of it."""
    message = json.loads(frame.header)
    error = message.get("error")
    return message["callId"], CallResult(
        is_final=message["isFinal"],
        error=None if error is None else (error["code"], error["message"]),
        response=message.get("response"),
        payload=frame.payload,
        value=message.get("value"),
    )


def typed_parameters(parameters: Iterable[Tuple[str, Any]]) -> Dict[str, Dict[str, Any]]:
    return {name: typed_parameter(value) for name, value in parameters}


def typed_parameter(value: Any) -> Dict[str, Any]:
    """A parameter as RESPONSE, PART, CALL and RESULT frames write it."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int64": str(value)}
    return {"string": value}


def plain_parameters(typed: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    plain: Dict[str, Any] = {}
    for name, value in typed.items():
        ((kind, held),) = value.items()
        plain[name] = int(held) if kind == "int64" else held
    return plain
