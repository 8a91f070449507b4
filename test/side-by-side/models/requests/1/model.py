"""What a request says about itself."""
import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, raised, seen


class TritonPythonModel(StepModel):
    # Not asked for here: TRITONSERVER_REQUEST_RELEASE_RESCHEDULE needs a model with an iterative sequence.
    def initialize(self, args):
        self.noticed = None

    def attributes(self, request):
        said = seen(
            {
                "request_id": request.request_id(),
                "correlation_id": request.correlation_id(),
                "flags": request.flags(),
                "timeout": str(request.timeout()),
                "parameters": json.loads(request.parameters()),
                "parameters_type": type(request.parameters()).__name__,
                "outputs": sorted(request.requested_output_names()),
                "outputs_type": type(request.requested_output_names()).__name__,
                "inputs": [tensor.name() for tensor in request.inputs()],
                "is_cancelled": request.is_cancelled(),
                "sender_is_cancelled": request.get_response_sender().is_cancelled(),
                "trace": type(request.trace()).__name__,
                "absent": pb_utils.get_input_tensor_by_name(request, "ABSENT"),
                "type": type(request).__name__,
            }
        )
        more = pb_utils.Tensor("MORE", np.array([1], np.int32))
        return pb_utils.InferenceResponse([*said.output_tensors(), more])

    def sets_flags(self, request):
        request.set_flags(pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
        first = request.flags()
        request.set_flags(pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)
        return [first, request.flags(), raised(request.set_flags, "x")]

    def release_flags(self, request):
        return [raised(request.set_release_flags, pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)]

    def unknown_release_flags(self, request):
        said = raised(request.set_release_flags, 7)
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)
        return [said]

    def waits(self, request):
        self.noticed = False
        for _ in range(500):
            if request.is_cancelled():
                self.noticed = request.get_response_sender().is_cancelled()
                break
            time.sleep(0.01)
        return "waited"

    def was_cancelled(self, _):
        return self.noticed
