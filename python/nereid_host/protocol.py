"""The host protocol: how the server and a host process talk over one stream socket. The twin of
src/instance/protocol.ts; docs/host-protocol.md describes it. All integers are little-endian; a frame is

  | u32 header bytes | u8 type | u8 place | u16 slot | u64 payload bytes | header | pad to 64 | payload | pad to 64 |

With the place 1 the payload is not in the frame but in that slot of the shared memory (slots.py).

The host speaks first (HELLO, with the protocol version). Control headers are JSON; EXECUTE, RESPONSE and PART
have the binary headers of execute_frame.py and response_frame.py; CALL and RESULT are in call_frame.py. Tensor bytes are only ever in the payload.
"""
import json
import struct
from typing import Any, Dict, Optional

PROTOCOL_VERSION = 3

FRAME_HELLO = 1
FRAME_LOAD = 2
FRAME_LOADED = 3
FRAME_START = 4
FRAME_STARTED = 5
FRAME_FAILED = 6
FRAME_EXECUTE = 7
FRAME_RESPONSE = 8
FRAME_CANCEL = 9
FRAME_PING = 10
FRAME_PONG = 11
FRAME_LOG = 12
FRAME_STOP = 13
FRAME_PART = 14
FRAME_FLOW = 15
FRAME_CALL = 16
FRAME_RESULT = 17
FRAME_CALL_CANCEL = 18
FRAME_CALL_FLOW = 19
FRAME_READY_ASK = 20
FRAME_READY_ANSWER = 21

PREAMBLE = struct.Struct("<IBBHQ")

# Where a payload is.
IN_FRAME = 0
IN_SLOT = 1

# Header and payload start at multiples of this, so that tensors in a frame are aligned for vector code.
FRAME_ALIGNMENT = 64


def align_up(count: int) -> int:
    return (count + FRAME_ALIGNMENT - 1) & -FRAME_ALIGNMENT


def encode_head(frame_type: int, header: bytes, payload_bytes: int, place: int = IN_FRAME, slot: int = 0) -> bytes:
    """Preamble and header, padded; the payload follows, unless it is in a slot."""
    head = PREAMBLE.pack(len(header), frame_type, place, slot, payload_bytes) + header
    return head.ljust(align_up(len(head)), b"\0")


def encode_control_frame(frame_type: int, message: Optional[Dict[str, Any]] = None) -> bytes:
    return encode_head(frame_type, b"" if message is None else json.dumps(message).encode(), 0)
