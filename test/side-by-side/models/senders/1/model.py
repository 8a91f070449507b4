"""Response senders of a model that is not decoupled."""
import threading
import time

import triton_python_backend_utils as pb_utils
from steps import FINAL, StepModel, raised, seen


class TritonPythonModel(StepModel):
    def initialize(self, args):
        self.noted = []

    def notes(self, _):
        """What the steps before have seen after they had answered."""
        noted, self.noted = self.noted, []
        return noted

    def sends_final(self, request):
        request.get_response_sender().send(seen("final"), flags=FINAL)

    def sends_then_final(self, request):
        sender = request.get_response_sender()
        sender.send(seen("first"))
        sender.send(flags=FINAL)

    def sends_from_thread(self, request):
        def work(sender):
            time.sleep(0.05)
            sender.send(seen("thread"), FINAL)

        threading.Thread(target=work, args=(request.get_response_sender(),)).start()

    def sends_error(self, request):
        response = pb_utils.InferenceResponse(error=pb_utils.TritonError("sent", pb_utils.TritonError.NOT_FOUND))
        request.get_response_sender().send(response, FINAL)

    def rules(self, request):
        sender = request.get_response_sender()
        before = [
            raised(sender.send),
            raised(sender.send, None, 0),
            raised(sender.send, flags=FINAL),
            raised(sender.send, seen(1), 2),
            raised(sender.send, seen(1), flags=3),
            raised(sender.send, "text"),
            raised(sender.send, seen(1), "x"),
        ]
        sender.send(seen(before))
        self.noted = [raised(sender.send, seen(2)), raised(sender.send, seen(2), FINAL)]
        sender.send(flags=FINAL)
        self.noted += [raised(sender.send, seen(3)), raised(sender.send, flags=FINAL)]

    def same_sender(self, request):
        first = request.get_response_sender()
        second = request.get_response_sender()
        return [first is second, type(first).__name__, second.is_cancelled()]

    def sends_and_returns(self, request):
        request.get_response_sender().send(seen("sent"), FINAL)
        return seen("returned")

    def sends_without_final(self, request):
        sender = request.get_response_sender()
        sender.send(seen("without final"))
        self.kept = sender

    def drops_sender(self, request):
        """Neither answers nor keeps the request."""
        request.get_response_sender()
