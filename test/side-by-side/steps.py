"""What the programs of models/ share; copied beside each model.py. STEP names the method that answers, SEEN is what it saw.

A method returns an InferenceResponse, None (its sender answers), or anything else, which is sent as JSON text.
"""
import json

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def seen(value, **more):
    """A response that says `value`."""
    text = np.array([json.dumps(value, sort_keys=True, default=str)], np.object_)
    return pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", text)], **more)


def raised(call, *args, **options):
    """What a call raises, or returns. Of a TypeError only the type: its text is pybind11's, with C++ names in it."""
    try:
        return call(*args, **options)
    except TypeError:
        return "TypeError"
    except BaseException as error:
        return "%s: %s" % (type(error).__name__, error)


def described(tensor):
    """What a tensor says about itself."""
    array = tensor.as_numpy()
    return {
        "name": tensor.name(),
        "shape": list(tensor.shape()),
        "is_cpu": tensor.is_cpu(),
        "dtype": str(array.dtype),
        "array_shape": list(array.shape),
        "values": [repr(value) for value in array.ravel().tolist()],
    }


def outcome(response):
    """A response of another model."""
    if response.has_error():
        error = response.error()
        return {"code": str(error.code()).split(".")[-1], "message": error.message()}
    return [described(tensor) for tensor in response.output_tensors()]


def step_of(request):
    return pb_utils.get_input_tensor_by_name(request, "STEP").as_numpy()[0].decode()


class StepModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        answer = getattr(self, step_of(request))(request)
        return answer if answer is None or isinstance(answer, pb_utils.InferenceResponse) else seen(answer)
