"""Frames on the server's socket: a reader for the one thread that reads, a writer for all that write."""
import socket
import threading
from typing import Any, List, NamedTuple, Optional

from nereid_host.protocol import FRAME_ALIGNMENT, PREAMBLE, align_up

# Small frames come out of one buffer, many with one system call; larger payloads are received in place.
BUFFER_BYTES = 64 * 1024

# A frame up to this size is copied into one piece: cheaper than a long scatter-gather write.
COALESCE_BYTES_MAX = 64 * 1024

# Far below the limit of every system for the pieces of one write (1024 on Linux and macOS).
PIECES_MAX = 256


class Frame(NamedTuple):
    type: int
    header: memoryview
    # A writable, aligned numpy array of bytes; None when the frame has no payload.
    payload: Any


class FrameReader:
    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._start = 0
        self._end = 0

    def read(self) -> Optional[Frame]:
        """The next frame; None when the server is gone."""
        preamble = memoryview(bytearray(PREAMBLE.size))
        if not self._fill(preamble):
            return None
        header_bytes, frame_type, _, _, payload_bytes = PREAMBLE.unpack(preamble)
        padded = memoryview(bytearray(align_up(PREAMBLE.size + header_bytes) - PREAMBLE.size))
        if not self._fill(padded):
            return None
        payload = None
        if payload_bytes > 0:
            payload = allocate_aligned(align_up(payload_bytes))
            if not self._fill(memoryview(payload)):
                return None
        return Frame(frame_type, padded[:header_bytes], payload)

    def _fill(self, target: memoryview) -> bool:
        """Fills the target; False at the end of the stream."""
        position = self._take(target)
        while position < len(target):
            rest = target[position:]
            if len(rest) >= BUFFER_BYTES:
                count = self._receive(rest)
            else:
                self._start = 0
                self._end = self._receive(self._buffer)
                count = self._take(rest)
            if count == 0:
                return False
            position += count
        return True

    def _take(self, target: memoryview) -> int:
        """Moves what is already in the buffer; the number of bytes."""
        count = min(len(target), self._end - self._start)
        target[:count] = self._buffer[self._start : self._start + count]
        self._start += count
        return count

    def _receive(self, target: memoryview) -> int:
        try:
            return self._socket.recv_into(target)
        except OSError:
            return 0


class FrameWriter:
    """Whole frames from any thread. A server that is gone is the reader's matter, here nothing is raised."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()

    def send(self, pieces: List[Any]) -> None:
        """Sends the pieces of one frame (bytes or arrays of bytes) in order."""
        views = [memoryview(piece) for piece in pieces if len(piece) > 0]
        try:
            if sum(map(len, views)) <= COALESCE_BYTES_MAX:
                frame = b"".join(views)
                with self._lock:
                    self._socket.sendall(frame)
            else:
                with self._lock:
                    self._send_in_place(views)
        except OSError:
            pass

    def _send_in_place(self, views: List[memoryview]) -> None:
        first = 0
        while first < len(views):
            count = self._socket.sendmsg(views[first : first + PIECES_MAX])
            while first < len(views) and count >= len(views[first]):
                count -= len(views[first])
                first += 1
            if count > 0:
                views[first] = views[first][count:]


def allocate_aligned(count: int) -> Any:
    """An array of bytes that models may write to; not cleared, because all of it is received."""
    # Not at the top: a host must be able to say that numpy is missing. Payloads come only after that.
    import numpy

    block = numpy.empty(count + FRAME_ALIGNMENT, numpy.uint8)
    start = -block.ctypes.data % FRAME_ALIGNMENT
    return block[start : start + count]
