"""A decoupled model: none, one or many responses, errors between them, and threads."""
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils
from steps import FINAL, raised, seen, step_of


def number(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("A", np.array([value], np.int32))])


def failed(text, code):
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(text, getattr(pb_utils.TritonError, code)))


class TritonPythonModel:
    def initialize(self, args):
        self.noted = []

    def execute(self, requests):
        for request in requests:
            answer = getattr(self, step_of(request))(request, request.get_response_sender())
            if answer is not None:
                return answer

    def notes(self, _, sender):
        noted, self.noted = self.noted, []
        sender.send(seen(noted), FINAL)

    def none(self, _, sender):
        sender.send(flags=FINAL)

    def one(self, _, sender):
        sender.send(number(1), FINAL)

    def one_then_final(self, _, sender):
        sender.send(number(1))
        sender.send(flags=FINAL)

    def many(self, _, sender):
        for value in range(5):
            sender.send(number(value))
        sender.send(flags=FINAL)

    def many_last_final(self, _, sender):
        for value in range(3):
            sender.send(number(value), FINAL if value == 2 else 0)

    def errors_between(self, _, sender):
        sender.send(number(1))
        sender.send(failed("in the middle", "UNAVAILABLE"))
        sender.send(number(2))
        sender.send(failed("at the end", "INVALID_ARG"), FINAL)

    def only_error(self, _, sender):
        sender.send(failed("alone", "NOT_FOUND"), FINAL)

    def empty_response(self, _, sender):
        sender.send(pb_utils.InferenceResponse([]))
        sender.send(pb_utils.InferenceResponse([]), FINAL)

    def thread(self, _, sender):
        def work():
            for value in range(3):
                time.sleep(0.02)
                sender.send(number(value))
            sender.send(flags=FINAL)

        threading.Thread(target=work).start()

    def rules(self, _, sender):
        before = [
            raised(sender.send),
            raised(sender.send, None, 0),
            raised(sender.send, seen(1), 2),
            raised(sender.send, flags=4),
            raised(sender.send, "text"),
            sender.is_cancelled(),
        ]
        sender.send(seen(before))
        sender.send(flags=FINAL)
        self.noted = [raised(sender.send, seen(3)), raised(sender.send, flags=FINAL)]

    def parameters(self, _, sender):
        response = pb_utils.InferenceResponse([pb_utils.Tensor("A", np.array([1], np.int32))], parameters={"n": 1, "s": "x"})
        sender.send(response, FINAL)

    def raises_at_once(self, _, sender):
        raise ValueError("before any response")

    def raises_after_one(self, _, sender):
        sender.send(number(1))
        raise ValueError("after one")

    def returns_list(self, _, sender):
        return [number(1)]

    def waits(self, request, sender):
        self.noted = [False]
        for _ in range(500):
            if sender.is_cancelled():
                self.noted = [request.is_cancelled()]
                break
            time.sleep(0.01)
        sender.send(flags=FINAL)
