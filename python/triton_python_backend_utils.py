"""triton_python_backend_utils: what a model.py imports, with the names, rules and words of Triton's module.

Classes come from nereid_host; here are the functions and constants.
"""
from typing import Any, Dict, Optional, Tuple, Union

import numpy as np

from nereid_host.answer import RESPONSE_COMPLETE_FINAL
from nereid_host.logger import Logger as Logger
from nereid_host.metrics import Metric as Metric
from nereid_host.metrics import MetricFamily as MetricFamily
from nereid_host.metrics import MetricKind as MetricKind
from nereid_host.model_config import ModelConfig as ModelConfig
from nereid_host.model_control import is_model_ready as is_model_ready
from nereid_host.model_control import load_model as load_model
from nereid_host.model_control import unload_model as unload_model
from nereid_host.model_exception import TritonModelException as TritonModelException
from nereid_host.received_request import REQUEST_RELEASE_ALL, REQUEST_RELEASE_RESCHEDULE
from nereid_host.received_request import InferenceResponseSender as InferenceResponseSender
from nereid_host.request import InferenceRequest as InferenceRequest
from nereid_host.request_options import InferenceTrace as InferenceTrace
from nereid_host.request_options import MemoryType as MemoryType
from nereid_host.request_options import PreferredMemory as PreferredMemory
from nereid_host.response import InferenceResponse as InferenceResponse
from nereid_host.response import TritonError as TritonError
from nereid_host.response_iterator import ResponseIterator as ResponseIterator
from nereid_host.runtime import runtime
from nereid_host.tensor import NUMPY_TYPES, datatype_of, deserialize_elements, serialize_elements
from nereid_host.tensor import Tensor as Tensor

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = RESPONSE_COMPLETE_FINAL
TRITONSERVER_REQUEST_RELEASE_ALL = REQUEST_RELEASE_ALL
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = REQUEST_RELEASE_RESCHEDULE
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU

# No TYPE_BF16: numpy has no such type.
TRITON_STRING_TO_NUMPY: Dict[str, type] = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Optional[Tensor]:
    return _find_tensor(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Optional[Tensor]:
    return _find_tensor(inference_response.output_tensors(), name)


def get_input_config_by_name(model_config: Dict[str, Any], name: str) -> Optional[Dict[str, Any]]:
    return _find_config(model_config, "input", name)


def get_output_config_by_name(model_config: Dict[str, Any], name: str) -> Optional[Dict[str, Any]]:
    return _find_config(model_config, "output", name)


def using_decoupled_model_transaction_policy(model_config: Dict[str, Any]) -> bool:
    return model_config.get("model_transaction_policy", {"decoupled": False})["decoupled"]


def triton_string_to_numpy(triton_type_string: str) -> type:
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type: int) -> Optional[type]:
    return NUMPY_TYPES.get(data_type)


def numpy_to_triton_type(data_type: Any) -> Optional[int]:
    return datatype_of(np.dtype(data_type))


def serialize_byte_tensor(input_tensor: np.ndarray) -> Union[bytes, Tuple[()], None]:
    """Elements in C order, each a u32 length and the bytes; None for other types."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    return serialize_elements(input_tensor)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> np.ndarray:
    """The 1-D array of the elements, each of type bytes."""
    return deserialize_elements(encoded_tensor)


def get_model_dir() -> str:
    """The directory of the model's version."""
    return runtime.model_directory


def _find_tensor(tensors: Any, name: str) -> Optional[Tensor]:
    return next((tensor for tensor in tensors if tensor.name() == name), None)


def _find_config(model_config: Dict[str, Any], kind: str, name: str) -> Optional[Dict[str, Any]]:
    return next((tensor for tensor in model_config.get(kind, []) if tensor["name"] == name), None)
