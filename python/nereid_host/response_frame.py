"""The RESPONSE and PART frames: what a model answers. The twin of src/instance/response-frame.ts, part-frame.ts
and result-codec.ts. A result is one of

  u8 1 | u16 outputs | per output: its range as in execute_frame.py | u8 datatype | u32 bytes | parameters
  u8 0 | u8 status code | u8 kind of error | u32 bytes | message
  u8 2                                          answered by PART frames; in a PART: a response without content
  u8 3                                          to be executed again, as the next step of its sequence
"""
import json
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from nereid_host.call_frame import typed_parameters
from nereid_host.protocol import FRAME_ALIGNMENT, FRAME_PART, FRAME_RESPONSE, IN_SLOT, align_up, encode_head
from nereid_host.slots import PAYLOAD_BYTES_MIN, Slot

_RESULT_ERROR = 0
_RESULT_OUTPUTS = 1
_RESULT_BY_SENDER = 2
_RESULT_RESCHEDULE = 3

# How statistics count a request that ended with an error.
NOT_EXECUTED = 0
FAILED = 1
ANSWERED = 2

# Not an error: the request is to be executed again.
RESCHEDULED = 3

_BY_SENDER_BYTE = bytes((_RESULT_BY_SENDER,))
_RESCHEDULE_BYTE = bytes((_RESULT_RESCHEDULE,))
_NO_PARAMETERS = struct.pack("<I", 0)
_OUTPUTS_HEAD = struct.Struct("<BH")
_RANGES: Dict[int, struct.Struct] = {}
_PADDING = bytes(FRAME_ALIGNMENT)


# Index in config.output, DataType number, shape, and bytes or an array of bytes.
Output = Tuple[int, int, Sequence[int], Any]


class Result(NamedTuple):
    """One answer. With neither outputs nor a code it has no content: the sender answers."""

    outputs: Optional[List[Output]] = None
    parameters: Optional[Dict[str, Any]] = None
    code: Optional[int] = None
    message: str = ""
    error_kind: int = FAILED


BY_SENDER = Result()
RESCHEDULE = Result(error_kind=RESCHEDULED)


class ExecuteTimes(NamedTuple):
    input_ns: int
    infer_ns: int
    output_ns: int


def encode_response_frame(
    batch_id: int, times: ExecuteTimes, results: List[Result], slot: Optional[Slot] = None
) -> List[Any]:
    """With a slot, it must finish the answer before the frame is sent."""
    return _encode(FRAME_RESPONSE, struct.pack("<IQQQI", batch_id, *times, len(results)), results, slot)


def encode_part_frame(batch_id: int, request: int, is_final: bool, result: Result) -> List[Any]:
    return _encode(FRAME_PART, struct.pack("<IIB", batch_id, request, is_final), [result])


def _encode(frame_type: int, start: bytes, results: List[Result], slot: Optional[Slot] = None) -> List[Any]:
    header = [start]
    payload: List[Any] = []
    position = taken = 0 if slot is None or not slot.is_lent else _keep_in_place(results, slot)
    for outputs, parameters, code, message, error_kind in results:
        if code is not None:
            header.append(_encode_error(code, error_kind, message))
        elif outputs is None:
            header.append(_BY_SENDER_BYTE if error_kind != RESCHEDULED else _RESCHEDULE_BYTE)
        else:
            header.append(_OUTPUTS_HEAD.pack(_RESULT_OUTPUTS, len(outputs)))
            for index, datatype, shape, data in outputs:
                length = len(data)
                rank = len(shape)
                fields = _RANGES.get(rank) or _range_of_rank(rank)
                at = -1 if taken == 0 else slot.offset_of(data)
                if at < 0:
                    at = position
                    payload.append(data)
                    position += length
                header.append(fields.pack(index, rank, *shape, at, length, datatype))
            header.append(_encode_parameters(parameters) if parameters else _NO_PARAMETERS)
    if slot is not None and (taken > 0 or position > PAYLOAD_BYTES_MIN) and position <= slot.size:
        slot.put_later(taken, payload)
        return [encode_head(frame_type, b"".join(header), position, IN_SLOT, slot.number)]
    if taken > 0:
        # A thread of the model has forked meanwhile: nothing lies in the slot any more.
        return _encode(frame_type, start, results)
    pieces = [encode_head(frame_type, b"".join(header), position), *payload]
    padding = align_up(position) - position
    if padding > 0:
        pieces.append(_PADDING[:padding])
    return pieces


def _keep_in_place(results: List[Result], slot: Slot) -> int:
    """How far the slot is taken by outputs that lie there already; those that cannot stay there are copied out of it."""
    total = kept = end = 0
    for result in results:
        for _, _, _, data in result.outputs or ():
            at = slot.offset_of(data)
            total += len(data)
            if at >= 0:
                kept += len(data)
                end = max(end, at + len(data))
    end = align_up(end)
    # The server reads the slot from its beginning, gaps as well.
    if end <= 2 * kept and end + total - kept <= slot.size:
        return end
    for result in results:
        for position, (index, datatype, shape, data) in enumerate(result.outputs or ()):
            if slot.offset_of(data) >= 0:
                result.outputs[position] = (index, datatype, shape, data.copy())
    return 0


def _range_of_rank(rank: int) -> struct.Struct:
    fields = _RANGES[rank] = struct.Struct("<HB%dQQQB" % rank)
    return fields


def _encode_error(code: int, error_kind: int, message: str) -> bytes:
    text = message.encode("utf-8", "replace")
    return struct.pack("<BBBI", _RESULT_ERROR, code, error_kind, len(text)) + text


def _encode_parameters(parameters: Dict[str, Any]) -> bytes:
    text = json.dumps(typed_parameters(parameters.items())).encode()
    return struct.pack("<I", len(text)) + text
