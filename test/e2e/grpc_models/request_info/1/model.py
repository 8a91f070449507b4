"""Answers what a model is told about its request, as one JSON text."""
import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        info = {
            "id": request.request_id(),
            "timeout": request.timeout(),
            "parameters": json.loads(request.parameters() or "{}"),
        }
        text = np.array([json.dumps(info).encode()], np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("INFO", text)])
