"""The EXECUTE frame: one batch for this instance. The twin of src/instance/execute-frame.ts. Header:

  u32 batch id | u32 requests | per request:
    u16 inputs | per input: u16 index | u8 rank | rank x u64 dims | u64 offset in the payload | u64 bytes
    u16 requested outputs | u16 index ...
    u32 bytes | request info as JSON
    u32 state slot + 1, 0 for none | u8 flags: 1 the sequence starts, 2 it ends
"""
import struct
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from nereid_host.frames import Frame
from nereid_host.tensor import DATATYPE_NUMBERS, Tensor

_TWO_U32 = struct.Struct("<II")
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_INDEX_AND_RANK = struct.Struct("<HB")
_STATE = struct.Struct("<IB")
_RANGES: Dict[int, struct.Struct] = {}

# Flags of a state.
STATE_START = 1
STATE_END = 2

_FLAG_TYPES = (
    ("int32_false_true", "TYPE_INT32"),
    ("fp32_false_true", "TYPE_FP32"),
    ("bool_false_true", "TYPE_BOOL"),
)

# Name and DataType number by the index that the frame gives.
InputTable = Sequence[Tuple[str, int]]


class SentRequest(NamedTuple):
    inputs: List[Tensor]
    # Indexes into config.output; empty means all.
    requested_outputs: Tuple[int, ...]
    info: bytes
    # Where states.py keeps the state of the request's sequence, counted from 1; 0 for nowhere.
    state_slot: int = 0
    state_flags: int = 0


class SentBatch(NamedTuple):
    id: int
    # Where the answer may be put; 0 for nowhere.
    slot: int
    requests: List[SentRequest]


def input_table(config: Dict[str, Any]) -> InputTable:
    """The inputs of the config, then the control inputs of sequences, then their states, as the frame counts them."""
    table = [(tensor["name"], DATATYPE_NUMBERS[tensor["data_type"]]) for tensor in config["input"]]
    batching = config.get("sequence_batching") or {}
    for control in batching.get("control_input", []):
        table.append((control["name"], DATATYPE_NUMBERS[control_type(control["control"][0])]))
    for state in batching.get("state", []):
        table.append((state["input_name"], DATATYPE_NUMBERS[state["data_type"]]))
    return table


def control_type(control: Dict[str, Any]) -> str:
    for field, datatype in _FLAG_TYPES:
        if control.get(field):
            return datatype
    return control["data_type"]


def decode_execute_frame(frame: Frame, inputs: InputTable) -> SentBatch:
    """Of one piece, because it runs for every request: a call in Python costs more than most of its steps."""
    header = frame.header
    payload = frame.payload
    batch_id, count = _TWO_U32.unpack_from(header, 0)
    at = _TWO_U32.size
    requests: List[SentRequest] = []
    for _ in range(count):
        (input_count,) = _U16.unpack_from(header, at)
        at += 2
        tensors: List[Tensor] = []
        for _ in range(input_count):
            index, rank = _INDEX_AND_RANK.unpack_from(header, at)
            fields = _RANGES.get(rank) or _range_of_rank(rank)
            values = fields.unpack_from(header, at + 3)
            at += 3 + fields.size
            start = values[rank]
            data = None if payload is None else payload[start : start + values[rank + 1]]
            name, datatype = inputs[index]
            tensors.append(Tensor.received(name, datatype, values[:rank], data))
        (output_count,) = _U16.unpack_from(header, at)
        at += 2
        requested: Tuple[int, ...] = ()
        if output_count > 0:
            requested = struct.unpack_from("<%dH" % output_count, header, at)
            at += output_count * 2
        (info_bytes,) = _U32.unpack_from(header, at)
        at += 4
        info = header[at : at + info_bytes]
        at += info_bytes
        state_slot, state_flags = _STATE.unpack_from(header, at)
        at += 5
        requests.append(SentRequest(tensors, requested, info, state_slot, state_flags))
    return SentBatch(batch_id, frame.slot, requests)


def _range_of_rank(rank: int) -> struct.Struct:
    fields = _RANGES[rank] = struct.Struct("<%dQQQ" % rank)
    return fields
