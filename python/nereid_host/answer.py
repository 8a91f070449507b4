"""The answer to one request: what was sent, what may still be sent, and whether anybody waits for it.

The request object and the response sender share it, threads of the model send through it, and the host's reader
thread tells it that the client is gone or reads too slowly. When a model lets go of both request and sender before
the last response, the answer is ended for it: a request never stays open because a model forgot it.
"""
import json
import sys
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from nereid_host.model_exception import TritonModelException
from nereid_host.response import InferenceResponse
from nereid_host.response_frame import ANSWERED, BY_SENDER, NOT_EXECUTED, RESCHEDULE, Output, Result
from nereid_host.status import CANCELLED, INTERNAL, UNKNOWN

RESPONSE_COMPLETE_FINAL = 1

DROPPED = "The model let go of the request without a final response."


# Batch id, and position in the batch.
AnswerKey = Tuple[int, int]


class AnswerLink(NamedTuple):
    """What answers share: the way to the server and the model's outputs."""

    send_part: Callable[[AnswerKey, bool, Result], None]
    # Called when an answer is dropped, from any thread and at any moment, so it may only leave a note.
    note_dropped: Callable[[AnswerKey, Result], None]
    is_decoupled: bool
    # Name to index in config.output.
    output_indexes: Dict[str, int]


class Answer:
    __slots__ = (
        "key",
        "is_cancelled",
        "is_rescheduled",
        "_link",
        "_output_indexes",
        "_lock",
        "_resumed",
        "_held",
        "_sent_count",
        "is_closed",
        "__weakref__",
    )

    def __init__(self, key: AnswerKey, link: AnswerLink, output_indexes: Dict[str, int]) -> None:
        self.key = key
        self.is_cancelled = False
        # The model wants to be given the request once more.
        self.is_rescheduled = False
        self._link = link
        # Only the requested ones.
        self._output_indexes = output_indexes
        self._lock = threading.Lock()
        self._resumed: Optional[threading.Event] = None
        # Parts that wait for the end of a pause.
        self._held: List[Tuple[bool, Result]] = []
        self._sent_count = 0
        self.is_closed = False

    def __del__(self) -> None:
        if self.is_closed:
            return
        has_answer = self._sent_count > 0 and not self._link.is_decoupled
        result = BY_SENDER if has_answer else Result(code=self._code_of(INTERNAL), message=DROPPED)
        self._link.note_dropped(self.key, result)

    def requested_output_names(self) -> List[str]:
        return list(self._output_indexes)

    def cancel(self) -> None:
        self.is_cancelled = True
        self.set_paused(False)

    def set_paused(self, is_paused: bool) -> None:
        """Called by the thread that reads frames."""
        with self._lock:
            if is_paused:
                if self._resumed is None and not self.is_cancelled:
                    self._resumed = threading.Event()
                return
            resumed, self._resumed = self._resumed, None
            held, self._held = self._held, []
            for is_final, result in held:
                self._link.send_part(self.key, is_final, result)
        if resumed is not None:
            resumed.set()

    def send(self, response: Optional[InferenceResponse], flags: int) -> None:
        """What the response sender does; blocks while the client of a stream reads too slowly.

        On an event loop it does not block, for that would stop the model's other streams: the part is held back.
        """
        if flags not in (0, RESPONSE_COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        resumed = self._resumed
        if resumed is not None and not _is_on_event_loop():
            resumed.wait()
        is_final = flags == RESPONSE_COMPLETE_FINAL
        with self._lock:
            self._check_open(response)
            result = BY_SENDER if response is None else self._result_of(response)
            self._sent_count += 1
            self.is_closed = is_final
            if is_final or not self.is_cancelled:
                self._send_part(is_final, result)

    def take_returned(self, response: InferenceResponse) -> Result:
        """The result for a response that `execute` returned."""
        with self._lock:
            self._check_open(response)
            result = self._result_of(response)
            self._sent_count += 1
            self.is_closed = True
        return result

    def refuse(self) -> Result:
        """The result for a request that was cancelled before its execution."""
        self.is_closed = True
        return Result(code=CANCELLED, error_kind=NOT_EXECUTED)

    def reschedule(self) -> Result:
        """The result for a request that the model wants to see again; what it sends then has another answer."""
        with self._lock:
            if self.is_closed:
                return BY_SENDER
            self.is_closed = True
        return RESCHEDULE

    def fail(self, message: str, code: int = INTERNAL) -> Result:
        """Ends the answer with an error, unless it has ended; the result for the RESPONSE frame."""
        error = Result(code=self._code_of(code), message=message)
        with self._lock:
            if self.is_closed:
                return BY_SENDER
            self.is_closed = True
            if self._sent_count == 0:
                return error
            # A model that is not decoupled has one response, and that one was sent.
            self._send_part(True, error if self._link.is_decoupled else BY_SENDER)
            return BY_SENDER

    def fail_later(self, message: str) -> None:
        """Ends the answer with an error, unless it has ended, when RESPONSE leaves that to the sender."""
        result = self.fail(message)
        if result is not BY_SENDER:
            self._link.send_part(self.key, True, result)

    def _send_part(self, is_final: bool, result: Result) -> None:
        """With the lock held, so that parts leave in order."""
        if self._resumed is None:
            self._link.send_part(self.key, is_final, result)
        else:
            self._held.append((is_final, result))

    def _check_open(self, response: Optional[InferenceResponse]) -> None:
        if not self._link.is_decoupled:
            if response is not None and self._sent_count > 0:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send more than one response."
                )
            if response is None and self._sent_count == 0:
                raise TritonModelException(
                    "Unable to send response. "
                    "Non-decoupled model cannot send complete final before sending a response."
                )
        if self.is_closed:
            raise TritonModelException("Unable to send response. Response sender has been closed.")

    def _code_of(self, code: int) -> int:
        """Triton does not keep the codes of decoupled models: every error of theirs is UNKNOWN."""
        return UNKNOWN if self._link.is_decoupled else code

    def _result_of(self, response: InferenceResponse) -> Result:
        error = response.error()
        if error is not None:
            return Result(code=self._code_of(int(error.code())), message=error.message(), error_kind=ANSWERED)
        outputs: List[Output] = []
        for tensor in response.output_tensors():
            # Outputs that nobody asked for, or that the config does not name, are left out, as Triton does.
            index = self._output_indexes.get(tensor.name())
            if index is not None:
                outputs.append((index, tensor.triton_dtype(), tensor.shape(), tensor.to_bytes()))
        text = response.parameters()
        parameters: Optional[Dict[str, Any]] = json.loads(text) if text not in ("", "{}") else None
        return Result(outputs, parameters)


def _is_on_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
