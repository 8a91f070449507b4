"""Memory for payloads, aligned for vector code."""
from typing import Any

from nereid_host.protocol import FRAME_ALIGNMENT


def allocate_aligned(count: int) -> Any:
    """An array of bytes that models may write to; not cleared, because all of it is received."""
    # Not at the top: a host must be able to say that numpy is missing. Payloads come only after that.
    import numpy

    block = numpy.empty(count + FRAME_ALIGNMENT, numpy.uint8)
    start = -block.__array_interface__["data"][0] % FRAME_ALIGNMENT
    return block[start : start + count]
