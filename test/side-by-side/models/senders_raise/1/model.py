"""A model that has answered by its sender and then raises."""
from steps import FINAL, StepModel, seen


class TritonPythonModel(StepModel):
    def after_final(self, request):
        request.get_response_sender().send(seen("sent"), FINAL)
        raise ValueError("after the answer")
