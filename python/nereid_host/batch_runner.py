"""Runs batches: EXECUTE frame to request objects, the model's `execute`, what it returned to a RESPONSE frame.

`accept`, `cancel` and `set_paused` are called by the thread that reads frames, `run` by the main thread, one batch after
another.
"""
import os
from time import perf_counter_ns
from types import CoroutineType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union
from weakref import WeakValueDictionary

from nereid_host.answer import Answer, AnswerKey, AnswerLink
from nereid_host.exception_text import text_of
from nereid_host.execute_frame import ExecuteDecoder, SentRequest, input_table
from nereid_host.frames import Frame
from nereid_host.model import PythonModel
from nereid_host.parents import working_for
from nereid_host.received_request import ReceivedRequest
from nereid_host.response import InferenceResponse
from nereid_host.response_frame import (
    BY_SENDER,
    ExecuteTimes,
    Result,
    encode_part_frame,
    encode_response_frame,
)
from nereid_host.runtime import runtime
from nereid_host.slots import SharedSlots
from nereid_host.states import SequenceStates
from nereid_host.status import INVALID_ARG, STATUS_CODES, StatusError


# Words of Triton.
_NOT_ITERATIVE = (
    "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag."
)


class OpenBatch(NamedTuple):
    id: int
    slot: int
    requests: List[SentRequest]
    # One per request. Nothing else of the host keeps them, so that a model's letting go is noticed.
    answers: List[Answer]


class BatchRunner:
    def __init__(
        self,
        model: PythonModel,
        config: Dict[str, Any],
        slots: Optional[SharedSlots],
        send: Callable[[List[Any]], None],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        """`send` writes a frame; `later` has something short done soon, on a thread of the host."""
        self._model = model
        is_decoupled = config.get("model_transaction_policy", {}).get("decoupled", False)
        self._slots = slots
        if slots is not None and is_decoupled:
            slots.copy_always()
        # Adapters of frameworks say which request failed and how; a model in Python returns responses.
        self._returned_types = (InferenceResponse,) if isinstance(model, PythonModel) else (InferenceResponse, StatusError)
        self._decoder = ExecuteDecoder(input_table(config))
        batching = config.get("sequence_batching") or {}
        self._is_iterative = bool(batching.get("iterative_sequence"))
        self._states: Optional[SequenceStates] = None
        if batching.get("state"):
            model_directory = os.path.dirname(runtime.model_directory)
            self._states = SequenceStates(config, model_directory, is_kept=not isinstance(model, PythonModel))
        self._output_names = [tensor["name"] for tensor in config["output"]]
        self._send = send
        self._later = later
        self._link = AnswerLink(
            send_part=self._send_part,
            note_dropped=self._note_dropped,
            is_decoupled=is_decoupled,
            output_indexes={name: index for index, name in enumerate(self._output_names)},
        )
        # The answers of batches that wait or run, and those that are still open when their batch is over: these only
        # as long as the model holds them.
        self._running: Dict[int, List[Answer]] = {}
        self._open: "WeakValueDictionary[AnswerKey, Answer]" = WeakValueDictionary()
        # A paused answer holds parts that must still leave, also when the model has let go of it.
        self._paused: Dict[AnswerKey, Answer] = {}
        self._coroutines: Any = None

    def accept(self, frame: Frame) -> OpenBatch:
        batch = self._decoder.decode(frame)
        answers: List[Answer] = []
        for position, request in enumerate(batch.requests):
            indexes = self._link.output_indexes
            if request.requested_outputs:
                indexes = {self._output_names[index]: index for index in request.requested_outputs}
            answers.append(Answer((batch.id, position), self._link, indexes))
        self._running[batch.id] = answers
        return OpenBatch(batch.id, batch.slot, batch.requests, answers)

    def _find(self, batch_id: int, request: int) -> Optional[Answer]:
        running = self._running.get(batch_id)
        return self._open.get((batch_id, request)) if running is None else running[request]

    def cancel(self, batch_id: int, request: int) -> None:
        answer = self._find(batch_id, request)
        if answer is not None:
            answer.cancel()
            self._paused.pop(answer.key, None)

    def set_paused(self, batch_id: int, request: int, is_paused: bool) -> None:
        answer = self._find(batch_id, request)
        if answer is None:
            return
        answer.set_paused(is_paused)
        if is_paused:
            self._paused[answer.key] = answer
        else:
            self._paused.pop(answer.key, None)

    def cancel_all(self) -> None:
        for answers in [*self._running.values(), list(self._open.values())]:
            for answer in answers:
                answer.cancel()

    def run(self, batch: OpenBatch) -> None:
        results, times = self._run(batch)
        slot = None if self._slots is None else self._slots.of(batch.slot)
        frame = encode_response_frame(batch.id, times, results, slot)
        if slot is not None and slot.is_in_use:
            # What still refers to the slot then is the model's.
            results.clear()
            batch.requests.clear()
            self._slots.finish_answer(slot)
        self._send(frame)
        for answer in batch.answers:
            if not answer.is_closed:
                self._open[answer.key] = answer
        del self._running[batch.id]

    def _run(self, batch: OpenBatch) -> Tuple[List[Result], ExecuteTimes]:
        start_ns = perf_counter_ns()
        results: List[Result] = []
        # Those that nobody waits for any more never reach the model.
        wanted: List[int] = []
        answers: List[Answer] = []
        requests: List[ReceivedRequest] = []
        for position, (sent, answer) in enumerate(zip(batch.requests, batch.answers)):
            # A sequence goes on from the state that each of its requests leaves, so none of them is left out.
            if answer.is_cancelled and sent.state_slot == 0:
                results.append(answer.refuse())
                continue
            lost = None if self._states is None else self._states.feed(sent)
            if lost is not None:
                results.append(answer.fail(lost.message, STATUS_CODES.index(lost.code)))
                continue
            results.append(BY_SENDER)
            wanted.append(position)
            answers.append(answer)
            requests.append(ReceivedRequest(sent.inputs, sent.info, answer))
        execute_ns = perf_counter_ns()
        returned = self._execute(requests, answers) if requests else []
        output_ns = perf_counter_ns()
        for position, answer, response in zip(wanted, answers, returned):
            results[position] = self._take(answer, response)
        if self._states is not None:
            self._states.keep([batch.requests[position] for position in wanted], returned)
        return results, ExecuteTimes(execute_ns - start_ns, output_ns - execute_ns, perf_counter_ns() - output_ns)

    def _execute(
        self, requests: List[ReceivedRequest], answers: List[Answer]
    ) -> List[Union[InferenceResponse, StatusError, None]]:
        """One element per request: a response, an error, or None when a sender answers."""
        try:
            # A coroutine takes this context with it.
            with working_for(tuple([answer.key for answer in answers])):
                returned = self._model.execute(requests)
                if isinstance(returned, CoroutineType):
                    returned = self._run_coroutine(returned, answers)
            return self._check_returned(returned, answers)
        except BaseException as error:
            return [StatusError("INTERNAL", self._report(error))] * len(requests)

    def _run_coroutine(self, coroutine: Any, answers: List[Answer]) -> Any:
        """Waits for its end, unless the model is decoupled: then executions run side by side."""
        if self._coroutines is None:
            from nereid_host.coroutines import CoroutineThread

            self._coroutines = CoroutineThread()
        future = self._coroutines.start(coroutine)
        if not self._link.is_decoupled:
            return future.result()
        future.add_done_callback(lambda done: self._finish_coroutine(done, answers))
        return None

    def _finish_coroutine(self, future: Any, answers: List[Answer]) -> None:
        try:
            self._check_returned(future.result(), answers)
        except BaseException as error:
            message = self._report(error)
            for answer in answers:
                answer.fail_later(message)

    def _check_returned(self, returned: Any, answers: List[Answer]) -> List[Any]:
        count = len(answers)
        if returned is None:
            return [None] * count
        if self._link.is_decoupled:
            raise StatusError(
                "INTERNAL",
                "Python model '%s' is using the decoupled mode and the execute function must return None."
                % self._model.name,
            )
        if not isinstance(returned, list):
            raise StatusError(
                "INTERNAL", "Expected a list in the execute return, found type '%s'." % type(returned)
            )
        if len(returned) != count:
            raise StatusError(
                "INTERNAL",
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                "InferenceRequest(s) size is:%d, and InferenceResponse(s) size is:%d\n" % (count, len(returned)),
            )
        for response, answer in zip(returned, answers):
            if answer.is_rescheduled and response is not None:
                raise StatusError(
                    "INTERNAL",
                    "Expected a None object in the execute function return list for reschduled request, found type '%s'."
                    % type(response),
                )
            if response is not None and not isinstance(response, self._returned_types):
                raise StatusError(
                    "INTERNAL",
                    "Expected an 'InferenceResponse' object in the execute function return list, found type '%s'."
                    % type(response),
                )
        return returned

    def _take(self, answer: Answer, response: Union[InferenceResponse, StatusError, None]) -> Result:
        if response is None:
            return self._reschedule(answer) if answer.is_rescheduled else BY_SENDER
        if isinstance(response, StatusError):
            return answer.fail(response.message, STATUS_CODES.index(response.code))
        try:
            return answer.take_returned(response)
        except Exception as error:
            return answer.fail(self._report(StatusError("INTERNAL", str(error))))

    def _reschedule(self, answer: Answer) -> Result:
        if self._is_iterative:
            return answer.reschedule()
        return answer.fail(_NOT_ITERATIVE, INVALID_ARG)

    def _report(self, error: BaseException) -> str:
        message = "Failed to process the request(s) for model '%s', message: %s" % (self._model.name, text_of(error))
        runtime.log("error", message)
        return message

    def _send_part(self, key: AnswerKey, is_final: bool, result: Result) -> None:
        batch_id, request = key
        self._send(encode_part_frame(batch_id, request, is_final, result))

    def _note_dropped(self, key: AnswerKey, result: Result) -> None:
        self._later(lambda: self._send_part(key, True, result))
