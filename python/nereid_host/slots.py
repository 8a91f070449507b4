"""Where large payloads cross without a socket: memory that the server shares with this host. The twin of
src/instance/shared-slots.ts. The server gives each batch a slot of its own: inputs are lent from it while the model executes,
and the outputs may be put in their place. Outputs that are a part of an input lie there already.

A model may keep what it was lent. That is noticed before the slot is used again: what it refers to then becomes memory of
this process alone, under the same address. A model that does so often is given copies.
"""
import ctypes
import mmap
import os
import sys
import threading
from typing import Any, List, Optional, Tuple
from weakref import ref

from nereid_host.aligned import allocate_aligned

# Payloads up to this cross faster with the frame itself.
PAYLOAD_BYTES_MIN = 32 * 1024

# Copies from then on when more than one payload of so many was kept.
LENT_PER_KEPT_MIN = 16

# Settings of glibc's allocator: by default a freed payload goes back to the kernel, and the next one is paid for page by page.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES_MAX = 64 * 1024 * 1024
_HEAP_PIECE_BYTES_MAX = 32 * 1024 * 1024

_MREMAP_MAYMOVE_FIXED = 1 | 2


class Slot:
    """One slot, as it is mapped here, and what is lent from it."""

    def __init__(self, number: int, fd: int, size: int) -> None:
        self.number = number
        self.size = size
        self._fd = fd
        # Dead when nothing refers to the payload any more; None when there is none.
        self._lent: "Optional[ref[Any]]" = None
        self._lent_bytes = 0
        self._pieces: List[Tuple[int, Any]] = []
        # A model may fork on any of its threads.
        self._lock = threading.Lock()
        self._map()

    @property
    def is_lent(self) -> bool:
        return self._lent is not None

    @property
    def is_in_use(self) -> bool:
        return self._lent is not None or len(self._pieces) > 0

    def _map(self) -> None:
        import numpy

        self._memory = mmap.mmap(self._fd, self.size, offset=(self.number - 1) * self.size)
        self._bytes = numpy.frombuffer(self._memory, numpy.uint8)
        self._address = _address_of(self._bytes)
        self._as_bytes = numpy.frombuffer

    def lend(self, count: int) -> Any:
        # Not a part of `_bytes`: what is made of this array refers to it, and so keeps it alive.
        payload = self._as_bytes(self._memory, self._bytes.dtype, count)
        self._lent_bytes = count
        self._lent = ref(payload)
        return payload

    def copy(self, count: int) -> Any:
        payload = allocate_aligned(count)
        payload[:] = self._bytes[:count]
        return payload

    def offset_of(self, array: Any) -> int:
        """Where an output lies in what was lent; -1 when it is elsewhere."""
        if self._lent is None or not hasattr(array, "__array_interface__"):
            return -1
        offset = _address_of(array) - self._address
        return offset if 0 <= offset and offset + len(array) <= self._lent_bytes else -1

    def put_later(self, position: int, pieces: List[Any]) -> None:
        """What `finish_answer` puts there, one behind another."""
        for piece in pieces:
            self._pieces.append((position, piece))
            position += len(piece)

    def finish_answer(self) -> bool:
        """Called when the host has let go of all that was lent; true when the model has not."""
        is_kept = self.leave()
        pieces, self._pieces = self._pieces, []
        for position, piece in pieces:
            self._bytes[position : position + len(piece)] = self._as_bytes(piece, self._bytes.dtype)
        return is_kept

    def leave(self) -> bool:
        """Makes what is still referred to memory of this process alone; false when there is nothing."""
        with self._lock:
            is_kept = self._lent is not None and self._lent() is not None
            if is_kept:
                _make_private(self._address, self._lent_bytes)
                self._map()
            self._lent = None
            return is_kept


class SharedSlots:
    def __init__(self, fd: int, slot_bytes: int) -> None:
        """`slot_bytes` is the size of one slot; the size of the file tells their number."""
        _keep_freed_memory()
        count = os.fstat(fd).st_size // slot_bytes
        self._slots = [Slot(number, fd, slot_bytes) for number in range(1, count + 1)]
        self._lent_count = 0
        self._kept_count = 0
        self._is_lending = True
        # A child would go on seeing what the server writes.
        os.register_at_fork(before=self._leave_all, after_in_child=self._slots.clear)

    def of(self, number: int) -> Optional[Slot]:
        """Slots count from 1; 0 is none."""
        return self._slots[number - 1] if number > 0 else None

    def copy_always(self) -> None:
        """For models that are known to keep their requests."""
        self._is_lending = False

    def read(self, number: int, payload_bytes: int) -> Any:
        """The payload, until the batch is answered; what is kept of it longer, stays as it is."""
        slot = self._slots[number - 1]
        if not self._is_lending:
            return slot.copy(payload_bytes)
        self._lent_count += 1
        return slot.lend(payload_bytes)

    def finish_answer(self, slot: Slot) -> None:
        if slot.finish_answer():
            self._kept_count += 1
            if self._kept_count * LENT_PER_KEPT_MIN > self._lent_count:
                self._is_lending = False

    def _leave_all(self) -> None:
        for slot in self._slots:
            slot.leave()


def _address_of(array: Any) -> int:
    return array.__array_interface__["data"][0]


def _make_private(address: int, count: int) -> None:
    """Other threads may look at the memory meanwhile: its pages are replaced at once by others with the same bytes."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    length = -(-count // mmap.PAGESIZE) * mmap.PAGESIZE
    access = mmap.PROT_READ | mmap.PROT_WRITE
    made = libc.mmap(None, length, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if made != ctypes.c_void_p(-1).value:
        ctypes.memmove(made, address, count)
        if libc.mremap(made, length, length, _MREMAP_MAYMOVE_FIXED, address) == address:
            return
    raise MemoryError("no memory for %d bytes of inputs that the model keeps: %s" % (count, os.strerror(ctypes.get_errno())))


def _keep_freed_memory() -> None:
    if sys.platform.startswith("linux"):
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
            mallopt(_M_MMAP_THRESHOLD, _HEAP_PIECE_BYTES_MAX)
