"""The calls that a model has made of the server and that are not answered to the end. One per host: any thread of the
model starts calls, the thread that reads frames hands in the results, and a host that is told to stop fails what is open.
"""
import threading
from queue import SimpleQueue
from typing import Any, Callable, Dict, List, Optional

from nereid_host.call_frame import CallResult, Payload, decode_result_frame, encode_call_frame
from nereid_host.frames import Frame
from nereid_host.model_exception import TritonModelException
from nereid_host.protocol import FRAME_CALL_CANCEL, FRAME_CALL_FLOW, encode_control_frame
from nereid_host.reading import Reading

# A call with this id gets no result.
_NO_RESULT = 0

_STOPPED = CallResult(True, ("UNAVAILABLE", "the instance is being stopped"), None, None, None)

# Called on the thread that reads frames, so it must neither block nor raise.
OnResult = Callable[[CallResult], None]


class Calls:
    def __init__(self, send: Callable[[List[Any]], None]) -> None:
        """`send` writes a frame, from any thread."""
        self._send = send
        self._lock = threading.Lock()
        self._open: Dict[int, OnResult] = {}
        self._last_id = _NO_RESULT
        self._is_stopped = False
        # Set by the host, which needs the one to make the other.
        self.reading: Optional[Reading] = None

    def is_open(self) -> bool:
        return bool(self._open)

    def next_id(self) -> int:
        with self._lock:
            self._last_id += 1
            return self._last_id

    def start(
        self,
        call_id: int,
        message: Dict[str, Any],
        payload: Optional[Payload],
        on_result: OnResult,
        is_waited_for: bool = False,
    ) -> None:
        """`on_result` hears of every result, the last one is final; results may come before this returns.

        `is_waited_for` says that the caller goes on to `wait_for` them.
        """
        with self._lock:
            is_stopped = self._is_stopped
            if not is_stopped:
                self._open[call_id] = on_result
        if is_stopped:
            on_result(_STOPPED)
        else:
            self._send(encode_call_frame({"callId": call_id, **message}, payload))
            if self.reading is not None and not is_waited_for:
                self.reading.attend()

    def wait_for(self, results: "SimpleQueue[Any]") -> Any:
        """The next of what `on_result` puts there."""
        return results.get() if self.reading is None else self.reading.wait_for(results)

    def ask(self, message: Dict[str, Any], payload: Optional[Payload] = None) -> Any:
        """Waits for the one result of a call and returns its value; raises what the server says against it."""
        results: "SimpleQueue[CallResult]" = SimpleQueue()
        self.start(self.next_id(), message, payload, results.put, is_waited_for=True)
        result = self.wait_for(results)
        if result.error is not None:
            raise TritonModelException(result.error[1])
        return result.value

    def tell(self, message: Dict[str, Any]) -> None:
        """A call whose result does not matter."""
        if not self._is_stopped:
            self._send(encode_call_frame({"callId": _NO_RESULT, **message}))

    def cancel(self, call_id: int) -> None:
        if call_id in self._open:
            self._send([encode_control_frame(FRAME_CALL_CANCEL, {"callId": call_id})])

    def set_paused(self, call_id: int, is_paused: bool) -> None:
        if call_id in self._open:
            self._send([encode_control_frame(FRAME_CALL_FLOW, {"callId": call_id, "isPaused": is_paused})])

    def on_result(self, frame: Frame) -> None:
        call_id, result = decode_result_frame(frame)
        with self._lock:
            on_result = self._open.pop(call_id, None) if result.is_final else self._open.get(call_id)
        if on_result is not None:
            on_result(result)

    def stop(self) -> None:
        """The server answers no more: what waits is told, and so is who asks from now on."""
        with self._lock:
            self._is_stopped = True
            waiting = list(self._open.values())
            self._open.clear()
        for on_result in waiting:
            on_result(_STOPPED)
