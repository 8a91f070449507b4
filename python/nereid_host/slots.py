"""Where large payloads cross without a socket: memory that the server shares with this host. The twin of
src/instance/shared-slots.ts. The server gives each batch a slot of its own; inputs are copied out of it when the frame is
read, because a model may keep them, and the outputs may be put in their place.
"""
import ctypes
import mmap
import sys
from typing import Any, List

from nereid_host.aligned import allocate_aligned

# Payloads up to this cross faster with the frame itself.
PAYLOAD_BYTES_MIN = 32 * 1024

# Settings of glibc's allocator: by default a freed payload goes back to the kernel, and the next one is paid for page by page.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES_MAX = 64 * 1024 * 1024
_HEAP_PIECE_BYTES_MAX = 32 * 1024 * 1024


class SharedSlots:
    def __init__(self, fd: int, slot_bytes: int) -> None:
        """`slot_bytes` is the size of one slot; the size of the file tells their number."""
        # Not at the top: a host must be able to say that numpy is missing.
        import numpy

        _keep_freed_memory()
        self._slot_bytes = slot_bytes
        self._bytes = numpy.frombuffer(mmap.mmap(fd, 0), numpy.uint8)
        self._as_bytes = numpy.frombuffer

    def read(self, slot: int, payload_bytes: int) -> Any:
        """The payload, copied. Slots count from 1."""
        start = (slot - 1) * self._slot_bytes
        payload = allocate_aligned(payload_bytes)
        payload[:] = self._bytes[start : start + payload_bytes]
        return payload

    def write(self, slot: int, pieces: List[Any], payload_bytes: int) -> bool:
        """False when the payload does not fit; it then goes with the frame."""
        if payload_bytes > self._slot_bytes:
            return False
        position = (slot - 1) * self._slot_bytes
        for piece in pieces:
            end = position + len(piece)
            self._bytes[position:end] = self._as_bytes(piece, self._bytes.dtype)
            position = end
        return True


def _keep_freed_memory() -> None:
    if sys.platform.startswith("linux"):
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
            mallopt(_M_MMAP_THRESHOLD, _HEAP_PIECE_BYTES_MAX)
