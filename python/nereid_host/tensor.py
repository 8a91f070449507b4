"""Tensor, and what numpy and Triton call the same datatype. Models use it through triton_python_backend_utils."""
import struct
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from nereid_host.dlpack import CPU_DEVICE, TYPE_BF16, export_dlpack, import_dlpack
from nereid_host.model_exception import TritonModelException

# DataType of model_config.proto, which is TRITONSERVER_DataType up to the name of 13.
TYPE_BYTES = 13

DATATYPE_NUMBERS: Dict[str, int] = {
    "TYPE_BOOL": 1,
    "TYPE_UINT8": 2,
    "TYPE_UINT16": 3,
    "TYPE_UINT32": 4,
    "TYPE_UINT64": 5,
    "TYPE_INT8": 6,
    "TYPE_INT16": 7,
    "TYPE_INT32": 8,
    "TYPE_INT64": 9,
    "TYPE_FP16": 10,
    "TYPE_FP32": 11,
    "TYPE_FP64": 12,
    "TYPE_STRING": TYPE_BYTES,
    "TYPE_BF16": TYPE_BF16,
}

NUMPY_TYPES: Dict[int, type] = {
    1: np.bool_,
    2: np.uint8,
    3: np.uint16,
    4: np.uint32,
    5: np.uint64,
    6: np.int8,
    7: np.int16,
    8: np.int32,
    9: np.int64,
    10: np.float16,
    11: np.float32,
    12: np.float64,
    TYPE_BYTES: np.object_,
}

_NUMBERS: Dict[np.dtype, int] = {np.dtype(numpy_type): number for number, numpy_type in NUMPY_TYPES.items()}
_LENGTH = struct.Struct("<I")
_NO_BYTES = np.empty(0, np.uint8)


def datatype_of(dtype: np.dtype) -> Optional[int]:
    return TYPE_BYTES if dtype.kind == "S" else _NUMBERS.get(dtype)


def serialize_elements(array: np.ndarray) -> bytes:
    """BYTES elements in C order, each a u32 length and the bytes; what is not bytes is written as UTF-8 text."""
    pieces: List[bytes] = []
    for item in array.ravel().tolist():
        data = item if isinstance(item, bytes) else str(item).encode("utf-8")
        pieces.append(_LENGTH.pack(len(data)))
        pieces.append(data)
    return b"".join(pieces)


def deserialize_elements(encoded: Union[bytes, np.ndarray]) -> np.ndarray:
    """The 1-D array of the elements, each of type bytes."""
    data = bytes(encoded)
    elements: List[bytes] = []
    at = 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            raise ValueError("the encoded tensor ends inside of an element")
        elements.append(data[at : at + length])
        at += length
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    return array


class Tensor:
    """A named array. Received tensors are views on the frame, made into arrays when first asked for."""

    # As error texts of Triton name it.
    __module__ = "c_python_backend_utils"

    __slots__ = ("_name", "_datatype", "_shape", "_array", "_data")

    def __init__(self, name: str, array: np.ndarray) -> None:
        if not isinstance(name, str) or not isinstance(array, np.ndarray):
            raise TypeError(
                "Tensor() takes a name and a numpy array, got %r and %r" % (type(name), type(array))
            )
        if name == "":
            raise TritonModelException("Tensor name cannot be an empty string.")
        datatype = datatype_of(array.dtype)
        if datatype is None:
            raise TritonModelException("NumPy dtype is not supported.")
        self._name = name
        self._datatype = datatype
        self._shape: Sequence[int] = array.shape
        self._array: Optional[np.ndarray] = array if array.flags.c_contiguous else array.copy("C")
        self._data: Any = None

    @classmethod
    def received(cls, name: str, datatype: int, shape: Sequence[int], data: Any) -> "Tensor":
        """A tensor of a frame: `data` is an array of bytes, or None for none."""
        tensor = cls.__new__(cls)
        tensor._name = name
        tensor._datatype = datatype
        tensor._shape = shape
        tensor._array = None
        tensor._data = _NO_BYTES if data is None else data
        return tensor

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> np.ndarray:
        if self._array is None:
            if self._datatype == TYPE_BF16:
                raise TritonModelException(
                    "Tensor dtype is BF16 and cannot be converted to NumPy. "
                    "Use to_dlpack() and from_dlpack() instead."
                )
            if self._datatype == TYPE_BYTES:
                self._array = deserialize_elements(self._data).reshape(self._shape)
            else:
                self._array = self._data.view(NUMPY_TYPES[self._datatype]).reshape(self._shape)
        return self._array

    def triton_dtype(self) -> int:
        return self._datatype

    def shape(self) -> List[int]:
        return list(self._shape)

    def is_cpu(self) -> bool:
        return True

    def to_dlpack(self) -> Any:
        if self._datatype == TYPE_BYTES:
            raise TritonModelException("DLPack does not have support for string tensors.")
        return export_dlpack(self.to_bytes(), self._datatype, self._shape)

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> "Tensor":
        """`tensor` is a DLPack capsule, or an array of any library that gives one. Its memory is used, not copied."""
        if name == "":
            raise TritonModelException("Tensor name cannot be an empty string.")
        imported = import_dlpack(tensor)
        return Tensor.received(name, imported.datatype, imported.shape, imported.data)

    def __dlpack__(self, stream: Any = None, **_options: Any) -> Any:
        # Newer consumers say more (max_version, dl_device, copy), all of which may be ignored for CPU memory.
        return self.to_dlpack()

    def __dlpack_device__(self) -> Tuple[int, int]:
        return CPU_DEVICE

    def to_bytes(self) -> Any:
        """What goes on the wire: bytes or an array of bytes, not copied where that can be avoided."""
        if self._array is None:
            return self._data
        if self._datatype == TYPE_BYTES:
            return serialize_elements(self._array)
        return self._array.reshape(-1).view(np.uint8)
