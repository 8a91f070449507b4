"""Calls a model in initialize."""
import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, raised


class TritonPythonModel(StepModel):
    def initialize(self, args):
        request = pb_utils.InferenceRequest(
            model_name="identity",
            requested_output_names=["OUT"],
            inputs=[pb_utils.Tensor("IN", np.zeros(1, np.float32))],
        )
        self.text = raised(request.exec)

    def said(self, _):
        return self.text
