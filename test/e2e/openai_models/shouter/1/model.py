"""An ordinary model, batched, one answer for each request: the text in capitals."""
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.shout(request) for request in requests]

    def shout(self, request):
        text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()
        loud = np.array([[word.decode().upper().encode() for word in row] for row in text], dtype=np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("text_output", loud)])
