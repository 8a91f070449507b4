"""The model.py that the real Triton serves in the bench: the same ONNX file through ONNX Runtime's Python API.

A batch of requests is put together, run once and taken apart, as a careful user of the Python backend writes it.
"""
import os

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        file = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy() for request in requests]
        # A single request needs no copy.
        batch = inputs[0] if len(inputs) == 1 else np.concatenate(inputs)
        (output,) = self.session.run(["OUTPUT"], {"INPUT": batch})
        responses = []
        start = 0
        for tensor in inputs:
            end = start + tensor.shape[0]
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", output[start:end])]))
            start = end
        return responses
