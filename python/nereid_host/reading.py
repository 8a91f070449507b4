"""Who reads the server's socket, and who runs the model: a hand-over between threads costs more than a small model.

The main thread does both in turn. It reads a frame, runs the batch, sends the answer and reads again, and no other
thread is woken. While it is busy nobody reads, which does no harm for a moment; when the moment grows long, or somebody
waits for the server's answer to a call, the helper thread takes the turn to read: cancellations, pings and results are
then heard while the model computes, and batches wait in a queue for the main thread. With the next batch that it has
queued, the helper gives the turn back. Held by at most one thread, the turn is never given back to nobody: whoever lets go
of it has a job for the main thread, which will take it.
"""
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import Any, Callable, Deque, NoReturn, Optional

Job = Callable[[], None]

# How long the main thread is busy with one job, at least, before the helper reads for it.
TICK_S = 0.02


class Reading:
    def __init__(self, read_one: Callable[[], Optional[Job]], is_result_awaited: Callable[[], bool]) -> None:
        """`read_one` waits for a frame and deals with it; what must be done on the main thread it returns."""
        self._read_one = read_one
        self._is_result_awaited = is_result_awaited
        self._main = threading.get_ident()
        self._turn = threading.Lock()
        # For the main thread. Destructors put notes, which only this kind of queue allows.
        self._jobs: "SimpleQueue[Job]" = SimpleQueue()
        self._wake: "SimpleQueue[None]" = SimpleQueue()
        self._notes: Deque[Job] = deque()
        self._job_count = 0
        self._is_busy = False
        self._is_helper_asleep = False

    def run(self) -> NoReturn:
        """The life of the main thread."""
        threading.Thread(target=self._help, name="nereid-reader", daemon=True).start()
        while True:
            self._run_one(self._next_job())

    def later(self, note: Job) -> None:
        """Has something short done soon, on either thread; safe in destructors."""
        self._notes.append(note)
        # One of the two may be waiting for a frame.
        self._jobs.put(self._run_notes)
        self._wake.put(None)

    def attend(self) -> None:
        """A result is awaited by a thread that does not read."""
        self._wake.put(None)

    def wait_for(self, results: "SimpleQueue[Any]") -> Any:
        """The next of the results, which somebody who reads frames puts there; the main thread reads them itself."""
        if threading.get_ident() == self._main:
            while results.empty() and self._turn.acquire(blocking=False):
                try:
                    job = self._read_one()
                    if job is not None:
                        self._jobs.put(job)
                finally:
                    self._turn.release()
        if results.empty() or self._is_result_awaited():
            self._wake.put(None)
        return results.get()

    def _next_job(self) -> Job:
        while self._turn.acquire(blocking=False):
            try:
                # Only who has the turn puts batches here, so that none can come while the next frame is awaited.
                if not self._jobs.empty():
                    return self._jobs.get()
                job = self._read_one()
            finally:
                self._turn.release()
            if job is not None:
                return job
        return self._jobs.get()

    def _run_one(self, job: Job) -> None:
        self._is_busy = True
        self._job_count += 1
        if self._is_helper_asleep or self._is_result_awaited():
            self._wake.put(None)
        job()
        self._is_busy = False

    def _help(self) -> NoReturn:
        seen = self._job_count
        while True:
            self._sleep(seen)
            self._run_notes()
            if self._is_result_awaited() or (self._is_busy and self._job_count == seen):
                self._read_for_main()
            seen = self._job_count

    def _sleep(self, seen: int) -> None:
        """Until the next tick, or until woken where no job was begun since the last one."""
        self._is_helper_asleep = True
        is_ticking = self._is_busy or self._job_count != seen
        self._is_helper_asleep = not is_ticking
        try:
            self._wake.get(timeout=TICK_S if is_ticking else None)
        except Empty:
            pass
        self._is_helper_asleep = False

    def _read_for_main(self) -> None:
        if not self._turn.acquire(blocking=False):
            return
        try:
            is_job_given = False
            while not is_job_given or self._is_result_awaited():
                job = self._read_one()
                if job is not None:
                    self._jobs.put(job)
                    is_job_given = True
        finally:
            self._turn.release()

    def _run_notes(self) -> None:
        while True:
            try:
                note = self._notes.popleft()
            except IndexError:
                return
            note()
