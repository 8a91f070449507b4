"""ResponseIterator: the responses of a model that was called with decoupled=True, one after another as they come.

Filled by the thread that reads frames, read by one thread of the model. When the model falls behind, the server is asked to
pause, so that a fast model does not fill the memory of a slow one. Responses that were read stay, as in Triton, so that a
second loop sees them again.
"""
import threading
from collections import deque
from typing import Callable, Deque, List, NamedTuple, Tuple

from nereid_host.response import InferenceResponse
from nereid_host.runtime import runtime

# Unread responses at which the server is asked to pause, and to go on.
UNREAD_MAX = 64
UNREAD_RESUME = 16


class StreamControl(NamedTuple):
    """What the reader of a stream may ask of the server."""

    cancel: Callable[[], None]
    set_paused: Callable[[bool], None]


class ResponseStream:
    """What came and was not read. The open call holds it, not the iterator, so that a dropped iterator is noticed."""

    def __init__(self, control: StreamControl) -> None:
        self._control = control
        self._changed = threading.Condition(threading.Lock())
        self._unread: Deque[InferenceResponse] = deque()
        self._is_paused = False
        self._is_dropped = False
        self._is_ended = False

    def put(self, response: InferenceResponse, is_final: bool) -> None:
        with self._changed:
            self._is_ended = is_final
            if self._is_dropped:
                return
            self._unread.append(response)
            if len(self._unread) >= UNREAD_MAX and not self._is_paused and not is_final:
                self._is_paused = True
                self._control.set_paused(True)
            self._changed.notify()

    def take(self) -> Tuple[InferenceResponse, bool]:
        """Waits for the next one; true beside it when it is the last."""
        with self._changed:
            while not self._unread:
                self._changed.wait()
            response = self._unread.popleft()
            if self._is_paused and len(self._unread) <= UNREAD_RESUME:
                self._resume()
            return response, self._is_ended and not self._unread

    def cancel(self) -> None:
        self._control.cancel()

    def drop(self) -> None:
        """Nobody will read: the model that was called goes on, as in Triton, and what it says is thrown away."""
        with self._changed:
            self._is_dropped = True
            self._unread.clear()
            if self._is_paused:
                self._resume()

    def _resume(self) -> None:
        self._is_paused = False
        self._control.set_paused(False)


class ResponseIterator:
    def __init__(self, stream: ResponseStream) -> None:
        self._stream = stream
        self._read: List[InferenceResponse] = []
        self._is_finished = False
        # Of the next response to be given again.
        self._index = 0

    def __del__(self) -> None:
        # At any moment and on any thread, so here it is only noted.
        if not self._is_finished:
            runtime.later(self._stream.drop)

    def __iter__(self) -> "ResponseIterator":
        if self._is_finished and self._index >= len(self._read):
            self._index = 0
        return self

    def __next__(self) -> InferenceResponse:
        if not self._is_finished:
            response, self._is_finished = self._stream.take()
            self._read.append(response)
            self._index = len(self._read)
            return response
        if self._index >= len(self._read):
            raise StopIteration("Iteration is done for the responses.")
        self._index += 1
        return self._read[self._index - 1]

    def cancel(self) -> None:
        """The rest is not wanted; the iteration still ends with a last response."""
        if not self._is_finished:
            self._stream.cancel()
