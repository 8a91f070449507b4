"""Memory for payloads, aligned for vector code."""
from typing import Any

from nereid_host.protocol import FRAME_ALIGNMENT

# Up to this the time to align is worth more than the alignment.
SMALL_BYTES_MAX = 4096

# Imported when the first payload comes: a host must be able to say that numpy is missing.
_numpy: Any = None


def allocate_aligned(count: int) -> Any:
    """An array of bytes that models may write to; not cleared, because all of it is received."""
    numpy = _numpy or _import_numpy()
    block = numpy.empty(count + FRAME_ALIGNMENT, numpy.uint8)
    start = -block.__array_interface__["data"][0] % FRAME_ALIGNMENT
    return block[start : start + count]


def copy_small(data: memoryview) -> Any:
    """The same for a few bytes that are there already; aligned as the allocator does, for every datatype."""
    numpy = _numpy or _import_numpy()
    return numpy.frombuffer(bytearray(data), numpy.uint8)


def _import_numpy() -> Any:
    global _numpy
    import numpy

    _numpy = numpy
    return numpy
