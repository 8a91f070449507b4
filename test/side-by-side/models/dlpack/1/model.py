"""DLPack: to numpy and back, of every datatype, and what is refused."""
import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, described, raised

DATATYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


class WithoutStream:
    """A producer as older libraries have it."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class TritonPythonModel(StepModel):
    def from_numpy(self, _):
        arrays = [np.arange(4).astype(name).reshape(2, 2) for name in DATATYPES]
        return [described(pb_utils.Tensor.from_dlpack("T", array)) for array in arrays]

    def to_numpy(self, _):
        arrays = []
        for name in DATATYPES:
            array = np.from_dlpack(pb_utils.Tensor("T", np.arange(4).astype(name).reshape(2, 2)))
            arrays.append([str(array.dtype), list(array.shape), array.ravel().tolist()])
        return arrays

    def capsules(self, _):
        tensor = pb_utils.Tensor("T", np.arange(3, dtype=np.float32))
        capsule = tensor.to_dlpack()
        again = pb_utils.Tensor.from_dlpack("AGAIN", capsule)
        return [type(capsule).__name__, described(again), list(tensor.__dlpack_device__())]

    def boolean(self, _):
        tensor = pb_utils.Tensor("T", np.array([True, False]))
        return raised(lambda: described(pb_utils.Tensor.from_dlpack("AGAIN", tensor.to_dlpack())))

    def old_producer(self, _):
        return described(pb_utils.Tensor.from_dlpack("T", WithoutStream(np.arange(3, dtype=np.int32))))

    def with_stream(self, _):
        tensor = pb_utils.Tensor("T", np.arange(3, dtype=np.int32))
        return type(tensor.__dlpack__(stream=None)).__name__

    def shares_memory(self, _):
        array = np.arange(3, dtype=np.int32)
        tensor = pb_utils.Tensor.from_dlpack("T", array)
        array[0] = 9
        return tensor.as_numpy().tolist()

    def of_input(self, request):
        tensor = request.inputs()[0]
        return [raised(tensor.to_dlpack), raised(tensor.__dlpack__), list(tensor.__dlpack_device__())]

    def no_elements(self, _):
        return described(pb_utils.Tensor.from_dlpack("T", np.zeros((0, 3), np.float32)))

    def refused(self, _):
        take = pb_utils.Tensor.from_dlpack
        array = np.arange(6, dtype=np.int32).reshape(2, 3)
        return [
            raised(take, "T", array.T),
            raised(take, "T", array[:, ::2]),
            raised(take, "", array),
            raised(take, "T", np.zeros(1, np.complex64)),
            raised(take, "T", [1]),
            raised(take, "T", None),
            raised(take, "T"),
        ]

    def capsule_twice(self, _):
        capsule = pb_utils.Tensor("T", np.arange(3, dtype=np.float32)).to_dlpack()
        pb_utils.Tensor.from_dlpack("A", capsule)
        return raised(pb_utils.Tensor.from_dlpack, "B", capsule)
