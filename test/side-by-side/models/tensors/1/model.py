"""Tensors that a model makes: layouts, sizes, texts, and what is refused."""
import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, described, raised

GRID = np.arange(12, dtype=np.int32).reshape(3, 4)


def out(array, name="OUT"):
    return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor(name, array)])


class TritonPythonModel(StepModel):
    def transposed(self, _):
        return out(GRID.T)

    def sliced(self, _):
        return out(GRID[::2, 1:3])

    def reversed(self, _):
        return out(GRID[::-1, ::-1])

    def fortran(self, _):
        return out(np.asfortranarray(GRID))

    def broadcast(self, _):
        return out(np.broadcast_to(np.int32(7), (2, 2)))

    def read_only(self, _):
        array = GRID.copy()
        array.setflags(write=False)
        return out(array)

    def empty(self, _):
        return out(np.zeros((0, 4), np.int32))

    def scalar(self, _):
        return out(np.array(5, np.int32))

    def another_datatype(self, _):
        return out(np.array([[1.5, -2.5]]))

    def another_shape(self, _):
        return out(np.arange(8, dtype=np.int32).reshape(2, 2, 2))

    def texts(self, _):
        return out(np.array(["é", "日本", "", b"\x00\xff", b"end\x00"], np.object_), "TEXT")

    def not_texts(self, _):
        return out(np.array([3, None, 2.5, True], np.object_), "TEXT")

    def fixed_bytes(self, _):
        return out(np.array([b"one", b"three"]), "TEXT")

    def texts_transposed(self, _):
        return out(np.array([["a", "b"], ["c", "d"]], np.object_).T, "TEXT")

    def no_texts(self, _):
        return out(np.array([], np.object_), "TEXT")

    def says(self, _):
        arrays = [GRID.T, np.zeros((0, 2), np.float16), np.array(1.5, np.float32), np.array(["é", b"b"], np.object_)]
        return [described(pb_utils.Tensor("T", array)) for array in arrays]

    def datatype_number(self, _):
        return pb_utils.Tensor("T", GRID).triton_dtype()

    def is_same_memory(self, _):
        array = GRID.copy()
        tensor = pb_utils.Tensor("T", array)
        array[0, 0] = 99
        return int(tensor.as_numpy()[0, 0])

    def refused(self, _):
        make = pb_utils.Tensor
        return [
            raised(make, "", GRID),
            raised(make, "T", np.zeros(1, np.complex64)),
            raised(make, "T", np.zeros(1, "datetime64[s]")),
            raised(make, "T", np.array([(1, 2.0)], "i4,f4")),
            raised(make, "T", [1, 2]),
            raised(make, "T", 1),
            raised(make, "T", None),
            raised(make, 1, GRID),
            raised(make, "T"),
        ]

    def input_values(self, request):
        return [described(tensor) for tensor in request.inputs()]
