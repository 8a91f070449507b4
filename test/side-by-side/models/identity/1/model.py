"""OUT is IN; the model that others call. A negative number is an error, -2 is an exception."""
import numpy as np
import triton_python_backend_utils as pb_utils


def answer(array):
    if array.size and array[0] == -1:
        return pb_utils.InferenceResponse(error=pb_utils.TritonError("negative", pb_utils.TritonError.INVALID_ARG))
    if array.size and array[0] == -2:
        raise ValueError("very negative")
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(array))])


class TritonPythonModel:
    def execute(self, requests):
        return [answer(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()) for request in requests]
