"""The EXECUTE frame: one batch for this instance. The twin of src/instance/execute-frame.ts. Header:

  u32 batch id | u32 requests | per request:
    u16 inputs | per input: u16 index | u8 rank | rank x u64 dims | u64 offset in the payload | u64 bytes
    u16 requested outputs | u16 index ...
    u32 bytes | request info as JSON
"""
import struct
from typing import Any, Dict, List, NamedTuple, Tuple

from nereid_host.frames import Frame

_TWO_U32 = struct.Struct("<II")
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_INDEX_AND_RANK = struct.Struct("<HB")
_RANGES: Dict[int, struct.Struct] = {}


class SentInput(NamedTuple):
    # Counts in config.input.
    index: int
    shape: Tuple[int, ...]
    # An array of bytes, a view on the frame; None when the frame has no payload.
    data: Any


class SentRequest(NamedTuple):
    inputs: List[SentInput]
    # Indexes into config.output; empty means all.
    requested_outputs: Tuple[int, ...]
    info: bytes


class SentBatch(NamedTuple):
    id: int
    # Where the answer may be put; 0 for nowhere.
    slot: int
    requests: List[SentRequest]


def decode_execute_frame(frame: Frame) -> SentBatch:
    header = frame.header
    batch_id, count = _TWO_U32.unpack_from(header, 0)
    at = _TWO_U32.size
    requests: List[SentRequest] = []
    for _ in range(count):
        at, request = _decode_request(frame, at)
        requests.append(request)
    return SentBatch(batch_id, frame.slot, requests)


def _decode_request(frame: Frame, at: int) -> Tuple[int, SentRequest]:
    header = frame.header
    (input_count,) = _U16.unpack_from(header, at)
    at += 2
    inputs: List[SentInput] = []
    for _ in range(input_count):
        at, sent = _decode_input(frame, at)
        inputs.append(sent)
    (output_count,) = _U16.unpack_from(header, at)
    at += 2
    requested = struct.unpack_from("<%dH" % output_count, header, at)
    at += output_count * 2
    (info_bytes,) = _U32.unpack_from(header, at)
    at += 4
    info = header[at : at + info_bytes]
    return at + info_bytes, SentRequest(inputs, requested, info)


def _decode_input(frame: Frame, at: int) -> Tuple[int, SentInput]:
    index, rank = _INDEX_AND_RANK.unpack_from(frame.header, at)
    fields = _range_of_rank(rank)
    values = fields.unpack_from(frame.header, at + _INDEX_AND_RANK.size)
    offset, byte_length = values[rank:]
    data = None if frame.payload is None else frame.payload[offset : offset + byte_length]
    return at + _INDEX_AND_RANK.size + fields.size, SentInput(index, values[:rank], data)


def _range_of_rank(rank: int) -> struct.Struct:
    fields = _RANGES.get(rank)
    if fields is None:
        fields = _RANGES[rank] = struct.Struct("<%dQQQ" % rank)
    return fields
