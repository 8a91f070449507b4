"""The life of the Python host: hello, load, start, then execute until the socket closes. Called by __main__.py.

Model code runs on the main thread, one job after another; reading.py tells who reads the frames, so that the host is heard
while the model computes. When the server goes away so does the host, whatever the model is doing.
"""
import atexit
import ctypes
import json
import os
import platform
import signal
import socket
import sys
import traceback
from typing import Any, Dict, List, NoReturn, Optional

from nereid_host.calls import Calls
from nereid_host.exception_text import text_of
from nereid_host.frames import Frame, FrameReader, FrameWriter
from nereid_host.protocol import (
    FRAME_CANCEL,
    FRAME_EXECUTE,
    FRAME_FAILED,
    FRAME_FLOW,
    FRAME_HELLO,
    FRAME_LOAD,
    FRAME_LOADED,
    FRAME_LOG,
    FRAME_PING,
    FRAME_PONG,
    FRAME_READY_ANSWER,
    FRAME_READY_ASK,
    FRAME_RESULT,
    FRAME_START,
    FRAME_STARTED,
    FRAME_STOP,
    PROTOCOL_VERSION,
    encode_control_frame,
)
from nereid_host.reading import Job, Reading
from nereid_host.runtime import FINALIZING, INITIALIZING, RUNNING, runtime
from nereid_host.slots import SharedSlots
from nereid_host.status import StatusError

_SOCKET_FD = 3
_PR_SET_PDEATHSIG = 1


def run_host(backend_file: Optional[str]) -> None:
    """Never returns. `backend_file` is the model.py of a Python-based backend, or None."""
    # A terminal or a service manager signals the whole group; only the server decides when a host ends. Functions,
    # because processes that a model starts would inherit a signal that is ignored.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: None)
    die_with_parent()
    # Prints reach the server's log when they happen.
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure")(line_buffering=True)
    Host(socket.socket(fileno=_SOCKET_FD), backend_file).run()


def die_with_parent() -> None:
    """On Linux the kernel ends us with the server; elsewhere the closing socket does."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


class Host:
    def __init__(self, connection: socket.socket, backend_file: Optional[str]) -> None:
        connection.setblocking(True)
        self._reader = FrameReader(connection)
        self._writer = FrameWriter(connection)
        self._calls = Calls(self._writer.send)
        self._reading = Reading(self._read_one, self._calls.is_open)
        self._calls.reading = self._reading
        self._backend_file = backend_file
        self._model: Any = None
        self._runner: Any = None
        self._is_stopping = False

    def run(self) -> NoReturn:
        runtime.log = self._log
        runtime.calls = self._calls
        runtime.later = self._reading.later
        language = "python %s" % platform.python_version()
        hello = {
            "protocolVersion": PROTOCOL_VERSION,
            "pid": os.getpid(),
            "language": language,
            "isSlotUser": sys.platform.startswith("linux"),
        }
        self._send(FRAME_HELLO, hello)
        self._reading.run()

    def _send(self, frame_type: int, message: Optional[Dict[str, Any]] = None) -> None:
        self._writer.send([encode_control_frame(frame_type, message)])

    def _send_answer(self, pieces: List[Any]) -> None:
        # Once the host was told to stop its batches are lost; the server has said so to the clients.
        if not self._is_stopping:
            self._writer.send(pieces)

    def _log(self, level: str, message: str) -> None:
        self._send(FRAME_LOG, {"level": level, "message": message})

    def _read_one(self) -> Optional[Job]:
        """Waits for one frame; what it asks of the main thread. Without the server there is nothing to live for."""
        try:
            frame = self._reader.read()
            if frame is None:
                os._exit(0)
            return self._on_frame(frame)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def _on_frame(self, frame: Frame) -> Optional[Job]:
        if frame.type == FRAME_EXECUTE:
            return self._accept(frame)
        if frame.type == FRAME_RESULT:
            self._calls.on_result(frame)
        elif frame.type == FRAME_PING:
            self._send(FRAME_PONG)
        elif frame.type == FRAME_CANCEL:
            message = json.loads(frame.header)
            if self._runner is not None:
                self._runner.cancel(message["batchId"], message["request"])
        elif frame.type == FRAME_FLOW:
            message = json.loads(frame.header)
            if self._runner is not None:
                self._runner.set_paused(message["batchId"], message["request"], message["isPaused"])
        elif frame.type == FRAME_LOAD:
            message = json.loads(frame.header)
            return lambda: self._load(message)
        elif frame.type == FRAME_START:
            config = json.loads(frame.header)["config"]
            return lambda: self._start(config)
        elif frame.type == FRAME_READY_ASK:
            ask_id = json.loads(frame.header)["askId"]
            return lambda: self._answer_ready(ask_id)
        elif frame.type == FRAME_STOP:
            self._is_stopping = True
            if self._runner is not None:
                self._runner.cancel_all()
            self._calls.stop()
            return self._stop
        else:
            self._log("warning", "host protocol: unknown frame type %d ignored" % frame.type)
        return None

    def _accept(self, frame: Frame) -> Job:
        runner = self._runner
        if runner is None:
            raise RuntimeError("host protocol: EXECUTE before START")
        # In a list that the job empties: whoever holds the job must not keep the requests alive.
        batch = [runner.accept(frame)]
        return lambda: runner.run(batch.pop())

    def _load(self, message: Dict[str, Any]) -> None:
        try:
            _require_numpy()
            from nereid_host.adapters import find_adapter, find_model_class
            from nereid_host.model import PythonModel

            adapter = find_adapter(message["backend"])
            is_python = adapter is None
            slots = message.get("slots")
            if slots is not None:
                self._reader.slots = SharedSlots(slots["fd"], slots["slotBytes"])
            if is_python:
                model_class = find_model_class(message["backend"])
                self._model = PythonModel(message, self._backend_file, model_class)
            else:
                self._model = adapter(message)
            config = self._model.complete_config()
            self._send(FRAME_LOADED, {"config": config, "isRequestInfoWanted": is_python})
        except BaseException as error:
            self._fail(error)

    def _start(self, config: Dict[str, Any]) -> None:
        from nereid_host.batch_runner import BatchRunner

        try:
            if self._model is None:
                raise StatusError("UNAVAILABLE", "host protocol: START before LOAD")
            runtime.phase = INITIALIZING
            self._model.initialize(config)
            runtime.phase = RUNNING
            self._runner = BatchRunner(
                self._model, config, self._reader.slots, self._send_answer, self._reading.later
            )
            self._send(FRAME_STARTED, {"hasReadyCheck": self._model.has_ready_check})
        except BaseException as error:
            self._fail(error)

    def _answer_ready(self, ask_id: int) -> None:
        self._send(FRAME_READY_ANSWER, {"askId": ask_id, "isReady": self._is_ready()})

    def _is_ready(self) -> bool:
        try:
            return self._model.is_ready()
        except BaseException as error:
            self._log("error", "is_ready failed: %s" % text_of(error))
            return False

    def _fail(self, error: BaseException) -> None:
        code = error.code if isinstance(error, StatusError) else "INTERNAL"
        self._send(FRAME_FAILED, {"code": code, "message": text_of(error)})

    def _stop(self) -> NoReturn:
        runtime.phase = FINALIZING
        try:
            if self._model is not None:
                self._model.finalize()
        except BaseException as error:
            self._log("error", "finalize failed: %s" % text_of(error))
        # Not sys.exit(), which waits for threads that the model left behind.
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)


def _require_numpy() -> None:
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        python = os.environ.get("NEREID_PYTHON") or "python3"
        raise StatusError(
            "INTERNAL",
            "the Python backend needs numpy, which %s does not have; install it with: %s -m pip install numpy"
            % (python, python),
        ) from None
