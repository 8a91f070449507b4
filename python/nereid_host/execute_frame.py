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

# Headers that are remembered: at most so many, of at most so many bytes.
KNOWN_MAX = 256
KNOWN_BYTES_MAX = 2048

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


class _Layout(NamedTuple):
    """One request as the header describes it, without its bytes."""

    # Name, DataType number, shape, start and end in the payload.
    inputs: List[Tuple[str, int, Tuple[int, ...], int, int]]
    requested_outputs: Tuple[int, ...]
    info: bytes
    state_slot: int
    state_flags: int


class ExecuteDecoder:
    """Reads EXECUTE frames. Those of a busy model are much alike: but for the batch id, many headers are the same bytes,
    and are read once. In Python that is worth more than anything else that is done for a request."""

    def __init__(self, inputs: InputTable) -> None:
        self._inputs = inputs
        self._known: Dict[bytes, List[_Layout]] = {}

    def decode(self, frame: Frame) -> SentBatch:
        header = frame.header
        key = header[_U32.size :]
        layouts = self._known.get(key)
        if layouts is None:
            layouts = self._read(header)
            if len(key) <= KNOWN_BYTES_MAX:
                if len(self._known) >= KNOWN_MAX:
                    self._known.clear()
                self._known[key] = layouts
        payload = frame.payload
        received = Tensor.received
        requests: List[SentRequest] = []
        for inputs, requested, info, state_slot, state_flags in layouts:
            if payload is None:
                tensors = [received(name, datatype, shape, None) for name, datatype, shape, _, _ in inputs]
            else:
                tensors = [
                    received(name, datatype, shape, payload[start:end])
                    for name, datatype, shape, start, end in inputs
                ]
            requests.append(SentRequest(tensors, requested, info, state_slot, state_flags))
        return SentBatch(_U32.unpack_from(header)[0], frame.slot, requests)

    def _read(self, header: bytes) -> List[_Layout]:
        (count,) = _U32.unpack_from(header, 4)
        at = 8
        layouts: List[_Layout] = []
        for _ in range(count):
            (input_count,) = _U16.unpack_from(header, at)
            at += 2
            inputs: List[Tuple[str, int, Tuple[int, ...], int, int]] = []
            for _ in range(input_count):
                index, rank = _INDEX_AND_RANK.unpack_from(header, at)
                fields = _RANGES.get(rank) or _range_of_rank(rank)
                values = fields.unpack_from(header, at + 3)
                at += 3 + fields.size
                start, length = values[rank:]
                inputs.append((*self._inputs[index], values[:rank], start, start + length))
            (output_count,) = _U16.unpack_from(header, at)
            at += 2
            requested = struct.unpack_from("<%dH" % output_count, header, at)
            at += output_count * 2
            (info_bytes,) = _U32.unpack_from(header, at)
            at += 4
            info = header[at : at + info_bytes]
            at += info_bytes
            state_slot, state_flags = _STATE.unpack_from(header, at)
            at += _STATE.size
            layouts.append(_Layout(inputs, requested, info, state_slot, state_flags))
        return layouts


def _range_of_rank(rank: int) -> struct.Struct:
    fields = _RANGES[rank] = struct.Struct("<%dQQQ" % rank)
    return fields
