"""DLPack: tensors given to and taken from other libraries (torch, jax, cupy) without a copy, for memory of the CPU.

Exported capsules are numpy's, so that their memory is let go by numpy's own code at whatever moment; only the type is
written anew, for numpy knows no bfloat16 and its older versions no bool. Imported ones are read with ctypes.
"""
import ctypes
from typing import Any, Dict, NamedTuple, Sequence, Tuple

import numpy as np

from nereid_host.model_exception import TritonModelException

TYPE_BF16 = 14

_CPU = 1
_CUDA = 2
_CUDA_HOST = 3

# Type and number, as __dlpack_device__ answers.
CPU_DEVICE = (_CPU, 0)

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6

# DataType number to (code, bits).
_DLPACK_TYPES: Dict[int, Tuple[int, int]] = {
    1: (_BOOL, 8),
    2: (_UINT, 8),
    3: (_UINT, 16),
    4: (_UINT, 32),
    5: (_UINT, 64),
    6: (_INT, 8),
    7: (_INT, 16),
    8: (_INT, 32),
    9: (_INT, 64),
    10: (_FLOAT, 16),
    11: (_FLOAT, 32),
    12: (_FLOAT, 64),
    TYPE_BF16: (_BFLOAT, 16),
}
_DATATYPES = {dlpack_type: number for number, dlpack_type in _DLPACK_TYPES.items()}
_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _ManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ManagedTensor))
_ManagedTensor._fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_NAME = b"dltensor"
# The name that says: somebody else lets the memory go. It must outlive the capsules.
_USED_NAME = ctypes.c_char_p(b"used_dltensor")

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype = ctypes.c_int
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Imported(NamedTuple):
    # DataType number.
    datatype: int
    shape: Tuple[int, ...]
    # An array of bytes on the memory of the other library.
    data: Any


class _Memory:
    """Memory of another library; numpy arrays made on it keep it, and the last of them gives it back."""

    def __init__(self, managed: Any, byte_length: int) -> None:
        self._managed = managed
        tensor = managed.contents.tensor
        address = (tensor.data or 0) + tensor.byte_offset
        self.__array_interface__ = {"data": (address, False), "shape": (byte_length,), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        deleter = self._managed.contents.deleter
        if deleter:
            deleter(self._managed)


def export_dlpack(data: Any, datatype: int, shape: Sequence[int]) -> Any:
    """A capsule named "dltensor" on `data`, an array of bytes."""
    code, bits = _DLPACK_TYPES[datatype]
    array = data.view(_UNSIGNED[bits]).reshape(shape)
    if not hasattr(array, "__dlpack__"):
        raise TritonModelException("DLPack needs numpy 1.22 or newer, this is %s" % np.__version__)
    # DLPack has no way to say that memory is read-only, so numpy refuses to give such memory away.
    capsule = (array if array.flags.writeable else array.copy()).__dlpack__()
    _managed_of(capsule).contents.tensor.dtype.code = code
    return capsule


def import_dlpack(tensor: Any) -> Imported:
    if type(tensor).__name__ == "PyCapsule":
        return _import_capsule(tensor)
    if not hasattr(tensor, "__dlpack__") or not hasattr(tensor, "__dlpack_device__"):
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule "
            "        or have `__dlpack__` and `__dlpack_device__` attributes"
        )
    _check_device(tensor.__dlpack_device__()[0])
    return _import_capsule(tensor.__dlpack__(stream=None))


def _import_capsule(capsule: Any) -> Imported:
    managed = _managed_of(capsule)
    tensor = managed.contents.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides and not _is_c_order(shape, tensor.strides[: tensor.ndim]):
        raise TritonModelException(
            "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
        )
    _check_device(tensor.device.type)
    datatype = _DATATYPES.get((tensor.dtype.code, tensor.dtype.bits))
    if datatype is None or tensor.dtype.lanes != 1:
        raise TritonModelException("Dtype is invalid.")
    byte_length = tensor.dtype.bits // 8
    for dim in shape:
        byte_length *= dim
    _set_name(capsule, _USED_NAME)
    memory = _Memory(managed, byte_length)
    # Memory without bytes may have no address.
    data = np.asarray(memory) if byte_length > 0 else np.empty(0, np.uint8)
    return Imported(datatype, shape, data)


def _managed_of(capsule: Any) -> Any:
    return ctypes.cast(_get_pointer(capsule, _NAME), ctypes.POINTER(_ManagedTensor))


def _is_c_order(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """As Triton looks: the stride of the first dimension does not matter, nor those of dimensions of 1."""
    if 0 in shape:
        return True
    expected = 1
    for dim, stride in zip(shape[:0:-1], strides[:0:-1]):
        if dim != 1:
            if stride != expected:
                return False
            expected *= dim
    return True


def _check_device(device_type: int) -> None:
    if device_type == _CUDA:
        raise TritonModelException(
            "DLPack capsule passed pointer to memory allocated on GPU device, "
            "          when GPU is not available"
        )
    if device_type not in (_CPU, _CUDA_HOST):
        raise TritonModelException("DLDevice type %d is not support by Python backend." % device_type)
