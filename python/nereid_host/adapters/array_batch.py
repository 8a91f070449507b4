"""Tensors of requests as arrays of a whole batch, and back. Called by framework_model.py; knows no framework."""
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from nereid_host.tensor import TYPE_BF16, TYPE_BYTES, Tensor


class Array(NamedTuple):
    # DataType of model_config.proto.
    datatype: int
    # BF16, which numpy lacks, as the uint16 of its bits; BYTES as objects.
    values: np.ndarray


# One array for each input that the request has.
Arrays = Dict[str, Array]


def arrays_of(tensors: Sequence[Tensor]) -> Arrays:
    return {tensor.name(): Array(tensor.triton_dtype(), _values_of(tensor)) for tensor in tensors}


def tensor_of(name: str, array: Array) -> Tensor:
    if array.datatype != TYPE_BF16:
        return Tensor(name, array.values)
    values = np.ascontiguousarray(array.values)
    return Tensor.received(name, TYPE_BF16, array.values.shape, values.reshape(-1).view(np.uint8))


def can_join(requests: Sequence[Arrays]) -> bool:
    """Whether the requests have the same inputs, and shapes that differ in the number of rows alone."""
    first = requests[0]
    return all(
        request.keys() == first.keys() and all(_has_same_rows(request[name], first[name]) for name in first)
        for request in requests
    )


def join(requests: Sequence[Arrays]) -> Arrays:
    if len(requests) == 1:
        return requests[0]
    joined: Arrays = {}
    for name, first in requests[0].items():
        parts = [request[name].values for request in requests]
        values = _as_one(parts)
        joined[name] = Array(first.datatype, np.concatenate(parts) if values is None else values)
    return joined


def row_count_of(request: Arrays) -> int:
    return next((array.values.shape[0] for array in request.values()), 0)


def split(array: Array, row_counts: Sequence[int]) -> List[Array]:
    """One part per request. Raises ValueError when the rows are not those that went in."""
    if len(row_counts) == 1:
        return [array]
    shape = array.values.shape
    if len(shape) == 0 or shape[0] != sum(row_counts):
        raise ValueError("an output of shape %s for a batch of %d" % (list(shape), sum(row_counts)))
    parts: List[Array] = []
    at = 0
    for count in row_counts:
        parts.append(Array(array.datatype, array.values[at : at + count]))
        at += count
    return parts


def _values_of(tensor: Tensor) -> np.ndarray:
    if tensor.triton_dtype() == TYPE_BF16:
        return tensor.to_bytes().view(np.uint16).reshape(tensor.shape())
    return tensor.as_numpy()


def _has_same_rows(array: Array, other: Array) -> bool:
    shape = array.values.shape
    return len(shape) > 0 and array.datatype == other.datatype and shape[1:] == other.values.shape[1:]


def _as_one(parts: List[np.ndarray]) -> Optional[np.ndarray]:
    """The server lays the rows of an input side by side, so a batch mostly needs no copy; None where it does."""
    first = parts[0]
    address = _address_of(first)
    for part in parts:
        # Within one buffer only: what lies behind the end of another may be freed.
        if part.dtype == np.object_ or part.base is None or part.base is not first.base:
            return None
        if not part.flags.c_contiguous or _address_of(part) != address:
            return None
        address += part.nbytes
    rows = sum(part.shape[0] for part in parts)
    return np.lib.stride_tricks.as_strided(first, (rows, *first.shape[1:]), first.strides)


def _address_of(array: np.ndarray) -> int:
    interface: Any = array.__array_interface__
    return interface["data"][0]


def text_array(texts: Sequence[Any]) -> Array:
    """A list of texts as a BYTES tensor of one dimension."""
    values = np.empty(len(texts), np.object_)
    values[:] = texts
    return Array(TYPE_BYTES, values)
