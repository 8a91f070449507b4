"""Decoupled: one response for each element of IN, DELAY ms apart; an error for -999. Stops when it is cancelled."""
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self.repeat(request)

    def repeat(self, request):
        sender = request.get_response_sender()
        delay = pb_utils.get_input_tensor_by_name(request, "DELAY")
        delay_ms = 0 if delay is None else int(delay.as_numpy()[0])
        for index, value in enumerate(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()):
            if request.is_cancelled():
                break
            time.sleep(delay_ms / 1000)
            sender.send(self.respond(index, value))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def respond(self, index, value):
        if value == -999:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"bad element at {index}"))
        out = pb_utils.Tensor("OUT", np.array([value], np.int32))
        return pb_utils.InferenceResponse([out, pb_utils.Tensor("IDX", np.array([index], np.uint32))])
