"""COUNT responses with their numbers; a negative COUNT is an error after so many. Called by others."""
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count = int(pb_utils.get_input_tensor_by_name(request, "COUNT").as_numpy()[0])
            for number in range(abs(count)):
                tensor = pb_utils.Tensor("INDEX", np.array([number], np.int32))
                sender.send(pb_utils.InferenceResponse([tensor]))
            if count < 0:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("negative")))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
