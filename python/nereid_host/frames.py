"""Frames on the server's socket: a reader for the one thread that reads, a writer for all that write."""
import os
import select
import socket
import threading
import time
from typing import Any, List, NamedTuple, Optional

from nereid_host.aligned import SMALL_BYTES_MAX, allocate_aligned, copy_small
from nereid_host.protocol import IN_SLOT, PREAMBLE, align_up
from nereid_host.slots import SharedSlots

# Small frames come out of one buffer, many with one system call; larger payloads are received in place.
BUFFER_BYTES = 64 * 1024

# A frame up to this size is copied into one piece: cheaper than a long scatter-gather write.
COALESCE_BYTES_MAX = 64 * 1024

# To be woken up takes a process some hundredths of a millisecond. One whose last frame came within this time looks for the
# next one that long before it sleeps: a busy model answers sooner, an idle one costs nothing.
LOOK_S = 0.0006

# Linux has it; elsewhere the shortest sleep does nearly the same.
_give_way = getattr(os, "sched_yield", lambda: time.sleep(0))

# Far below the limit of every system for the pieces of one write (1024 on Linux and macOS).
PIECES_MAX = 256


class Frame(NamedTuple):
    type: int
    header: bytes
    # A writable, aligned numpy array of bytes; None when the frame has no payload.
    payload: Any
    # Of the shared memory; 0 for none.
    slot: int = 0


class FrameReader:
    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._start = 0
        self._end = 0
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._is_soon = False
        # Where payloads are that are not in their frames.
        self.slots: Optional[SharedSlots] = None

    def read(self) -> Optional[Frame]:
        """The next frame; None when the server is gone."""
        while self._end - self._start < PREAMBLE.size:
            if not self._receive_more():
                return None
        header_bytes, frame_type, place, slot, payload_bytes = PREAMBLE.unpack_from(self._buffer, self._start)
        self._start += PREAMBLE.size
        padded_bytes = align_up(PREAMBLE.size + header_bytes) - PREAMBLE.size
        header = self._read_header(padded_bytes)
        if header is None:
            return None
        payload = None
        if place == IN_SLOT:
            payload = self._read_slot(slot, payload_bytes)
        elif payload_bytes > 0:
            end = self._start + align_up(payload_bytes)
            if end <= self._end and payload_bytes <= SMALL_BYTES_MAX:
                payload = copy_small(self._buffer[self._start : end])
                self._start = end
            else:
                payload = allocate_aligned(align_up(payload_bytes))
                if not self._fill(memoryview(payload)):
                    return None
        return Frame(frame_type, header[:header_bytes], payload, slot)

    def _read_header(self, count: int) -> Optional[bytes]:
        """Nearly always it came together with the preamble."""
        end = self._start + count
        if end <= self._end:
            header = bytes(self._buffer[self._start : end])
            self._start = end
            return header
        rest = bytearray(count)
        return bytes(rest) if self._fill(memoryview(rest)) else None

    def _read_slot(self, slot: int, payload_bytes: int) -> Any:
        if self.slots is None:
            raise RuntimeError("host protocol: a payload in shared memory that there is not")
        return self.slots.read(slot, payload_bytes)

    def _fill(self, target: memoryview) -> bool:
        """Fills the target; False at the end of the stream."""
        position = self._take(target)
        while position < len(target):
            rest = target[position:]
            if len(rest) >= BUFFER_BYTES:
                count = self._receive(rest)
            else:
                count = self._take(rest) if self._receive_more() else 0
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

    def _receive_more(self) -> bool:
        """Adds to what is in the buffer, which is less than a preamble; False at the end of the stream."""
        left = self._end - self._start
        if left > 0:
            self._buffer[:left] = bytes(self._buffer[self._start : self._end])
        count = self._receive(self._buffer[left:] if left > 0 else self._buffer)
        self._start = 0
        self._end = left + count
        return count > 0

    def _receive(self, target: memoryview) -> int:
        began = time.perf_counter()
        try:
            if self._is_soon:
                self._look(began + LOOK_S)
            count = self._socket.recv_into(target)
        except OSError:
            return 0
        self._is_soon = time.perf_counter() - began < LOOK_S
        return count

    def _look(self, until: float) -> None:
        """Returns when there is something to receive, or at that time. Whoever else wants the processor has it meanwhile."""
        while not self._poll.poll(0) and time.perf_counter() < until:
            _give_way()


class FrameWriter:
    """Whole frames from any thread. A server that is gone is the reader's matter, here nothing is raised."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()

    def send(self, pieces: List[Any]) -> None:
        """Sends the pieces of one frame (bytes or arrays of bytes) in order."""
        try:
            if len(pieces) == 1 or sum(map(len, pieces)) <= COALESCE_BYTES_MAX:
                frame = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                with self._lock:
                    self._socket.sendall(frame)
            else:
                views = [memoryview(piece) for piece in pieces if len(piece) > 0]
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
