"""The RESPONSE and PART frames: what a model answers. The twin of src/instance/response-frame.ts, part-frame.ts
and result-codec.ts. A result is one of

  u8 1 | u16 outputs | per output: its range as in execute_frame.py | u8 datatype | u32 bytes | parameters
  u8 0 | u8 status code | u8 kind of error | u32 bytes | message
  u8 2                                          answered by PART frames; in a PART: a response without content
"""
import json
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from nereid_host.call_frame import typed_parameters
from nereid_host.protocol import FRAME_PART, FRAME_RESPONSE, IN_SLOT, align_up, encode_head
from nereid_host.slots import PAYLOAD_BYTES_MIN, SharedSlots

_RESULT_ERROR = 0
_RESULT_OUTPUTS = 1
_RESULT_BY_SENDER = 2

# How statistics count a request that ended with an error.
NOT_EXECUTED = 0
FAILED = 1
ANSWERED = 2


class Output(NamedTuple):
    # Counts in config.output.
    index: int
    datatype: int
    shape: Sequence[int]
    # Bytes or an array of bytes.
    data: Any


class Result(NamedTuple):
    """One answer. With neither outputs nor a code it has no content: the sender answers."""

    outputs: Optional[List[Output]] = None
    parameters: Optional[Dict[str, Any]] = None
    code: Optional[int] = None
    message: str = ""
    error_kind: int = FAILED


BY_SENDER = Result()


class ExecuteTimes(NamedTuple):
    input_ns: int
    infer_ns: int
    output_ns: int


class ResponseSlot(NamedTuple):
    slots: SharedSlots
    number: int


def encode_response_frame(
    batch_id: int, times: ExecuteTimes, results: List[Result], slot: Optional[ResponseSlot] = None
) -> List[Any]:
    return _encode(FRAME_RESPONSE, struct.pack("<IQQQI", batch_id, *times, len(results)), results, slot)


def encode_part_frame(batch_id: int, request: int, is_final: bool, result: Result) -> List[Any]:
    return _encode(FRAME_PART, struct.pack("<IIB", batch_id, request, is_final), [result])


def _encode(
    frame_type: int, start: bytes, results: List[Result], slot: Optional[ResponseSlot] = None
) -> List[Any]:
    header = [start]
    payload: List[Any] = []
    position = 0
    for result in results:
        if result.code is not None:
            header.append(_encode_error(result.code, result.error_kind, result.message))
        elif result.outputs is None:
            header.append(bytes((_RESULT_BY_SENDER,)))
        else:
            header.append(struct.pack("<BH", _RESULT_OUTPUTS, len(result.outputs)))
            for output in result.outputs:
                header.append(_encode_output(output, position))
                payload.append(output.data)
                position += len(output.data)
            header.append(_encode_parameters(result.parameters))
    if slot is not None and position > PAYLOAD_BYTES_MIN and slot.slots.write(slot.number, payload, position):
        return [encode_head(frame_type, b"".join(header), position, IN_SLOT, slot.number)]
    padding = bytes(align_up(position) - position)
    return [encode_head(frame_type, b"".join(header), position)] + payload + [padding]


def _encode_error(code: int, error_kind: int, message: str) -> bytes:
    text = message.encode("utf-8", "replace")
    return struct.pack("<BBBI", _RESULT_ERROR, code, error_kind, len(text)) + text


def _encode_output(output: Output, offset: int) -> bytes:
    rank = len(output.shape)
    fields: Tuple[int, ...] = (*output.shape, offset, len(output.data), output.datatype)
    return struct.pack("<HB%dQQQB" % rank, output.index, rank, *fields)


def _encode_parameters(parameters: Optional[Dict[str, Any]]) -> bytes:
    if not parameters:
        return struct.pack("<I", 0)
    text = json.dumps(typed_parameters(parameters.items())).encode()
    return struct.pack("<I", len(text)) + text
