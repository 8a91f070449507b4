"""finalize raises: the model is unloaded all the same."""
from steps import StepModel


class TritonPythonModel(StepModel):
    def answers(self, _):
        return "answered"

    def finalize(self):
        raise ValueError("in finalize")
