"""Served by both sides of the bench as it is: the little arithmetic of a usual preprocessing step, in numpy."""
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy()
            scaled = (tensor - np.float32(0.45)) * np.float32(4.4)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", scaled)]))
        return responses
