"""The backend `tensorrt`: engines (model.plan) through the package tensorrt, with torch for the memory of the GPU.
Optimization profile 0 and tensors in GPU memory only. Made by host.py."""
from typing import Any, Dict, List

import numpy as np

from nereid_host.adapters.array_batch import Array, Arrays
from nereid_host.adapters.framework_model import FrameworkModel, import_package
from nereid_host.adapters.signature import (
    Signature,
    TensorSpec,
    check_names,
    check_tensors,
    complete_from_signature,
)
from nereid_host.runtime import runtime
from nereid_host.status import StatusError
from nereid_host.tensor import DATATYPE_NUMBERS, TYPE_BF16

# Name in tensorrt.DataType to (data_type, name in torch).
_TYPES = {
    "FLOAT": ("TYPE_FP32", "float32"),
    "HALF": ("TYPE_FP16", "float16"),
    "BF16": ("TYPE_BF16", "bfloat16"),
    "INT8": ("TYPE_INT8", "int8"),
    "UINT8": ("TYPE_UINT8", "uint8"),
    "INT32": ("TYPE_INT32", "int32"),
    "INT64": ("TYPE_INT64", "int64"),
    "BOOL": ("TYPE_BOOL", "bool"),
}


class TensorrtModel(FrameworkModel):
    execute_failure = "TensorRT execute failure"
    default_filename = "model.plan"

    def import_framework(self) -> None:
        self._trt = import_package("tensorrt", "tensorrt", "tensorrt")
        self._torch = import_package("tensorrt", "torch", "torch")
        self._engine: Any = None

    def complete(self, config: Dict[str, Any]) -> Dict[str, Any]:
        self._open()
        return complete_from_signature(config, self._signature, self._batch_size_max())

    def start(self) -> None:
        self._open()
        check_names(self.config, self._signature)
        check_tensors(self.config, self._signature)
        wanted, allowed = self.config["max_batch_size"], self._batch_size_max()
        if wanted > allowed:
            raise StatusError(
                "INVALID_ARG",
                "unexpected configuration maximum batch size %d for '%s', model maximum is %d"
                % (wanted, self.model_name, allowed),
            )
        self._context = self._engine.create_execution_context()
        self._stream = self._torch.cuda.Stream()

    def run(self, inputs: Arrays) -> Arrays:
        with self._torch.cuda.stream(self._stream):
            # Held until the stream is done: the engine has only their addresses.
            held = {name: self._to_device(array) for name, array in inputs.items()}
            for name, tensor in held.items():
                if not self._context.set_input_shape(name, tuple(tensor.shape)):
                    raise ValueError("input '%s' of shape %s is outside of the profile" % (name, list(tensor.shape)))
            for spec in self._signature.outputs:
                held[spec.name] = self._new_output(spec.name)
            for name, tensor in held.items():
                self._context.set_tensor_address(name, tensor.data_ptr())
            if not self._context.execute_async_v3(self._stream.cuda_stream):
                raise ValueError(self._last_error() or "the engine did not run")
            results = {tensor["name"]: held[tensor["name"]].cpu() for tensor in self.config["output"]}
            self._stream.synchronize()
        return {name: self._to_array(name, tensor) for name, tensor in results.items()}

    def _open(self) -> None:
        if self._engine is not None:
            return
        if self.placement["kind"] != "KIND_GPU":
            raise StatusError(
                "INVALID_ARG",
                "unable to load model '%s', TensorRT backend supports only GPU device" % self.model_name,
            )
        self._torch.cuda.set_device(self.placement["deviceId"])
        self._log = _create_log(self._trt)
        self._runtime = self._trt.Runtime(self._log)
        with open(self.find_file(), "rb") as file:
            self._engine = self._runtime.deserialize_cuda_engine(file.read())
        if self._engine is None:
            raise StatusError("INTERNAL", "unable to create TensorRT engine: %s" % self._last_error())
        self._signature = self._read_signature()

    def _read_signature(self) -> Signature:
        engine, trt = self._engine, self._trt
        signature = Signature([], [])
        for name in self._tensor_names():
            if engine.get_tensor_location(name) != trt.TensorLocation.DEVICE:
                raise StatusError("UNSUPPORTED", "tensor '%s' is a shape tensor, which is not supported" % name)
            data_type = _TYPES.get(engine.get_tensor_dtype(name).name, ("TYPE_INVALID", ""))[0]
            is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            specs = signature.inputs if is_input else signature.outputs
            specs.append(TensorSpec(name, data_type, list(engine.get_tensor_shape(name))))
        return signature

    def _tensor_names(self) -> List[str]:
        return [self._engine.get_tensor_name(index) for index in range(self._engine.num_io_tensors)]

    def _batch_size_max(self) -> int:
        """What the profile allows for the first dimension; 0 where that is fixed."""
        shapes = [spec.shape for spec in (*self._signature.inputs, *self._signature.outputs)]
        if not shapes or not all(shape and shape[0] == -1 for shape in shapes):
            return 0
        return min(self._engine.get_tensor_profile_shape(spec.name, 0)[2][0] for spec in self._signature.inputs)

    def _to_device(self, array: Array) -> Any:
        if array.datatype == TYPE_BF16:
            tensor = self._torch.from_numpy(array.values.view(np.int16)).view(self._torch.bfloat16)
        else:
            tensor = self._torch.from_numpy(array.values)
        return tensor.cuda()

    def _new_output(self, name: str) -> Any:
        shape = tuple(self._context.get_tensor_shape(name))
        if any(dim < 0 for dim in shape):
            raise ValueError("the shape of output '%s' depends on the data, which is not supported" % name)
        dtype = getattr(self._torch, _TYPES[self._engine.get_tensor_dtype(name).name][1])
        return self._torch.empty(shape, dtype=dtype, device="cuda")

    def _to_array(self, name: str, tensor: Any) -> Array:
        if tensor.dtype == self._torch.bfloat16:
            return Array(TYPE_BF16, tensor.view(self._torch.int16).numpy().view(np.uint16))
        data_type = next(spec.data_type for spec in self._signature.outputs if spec.name == name)
        return Array(DATATYPE_NUMBERS[data_type], tensor.numpy())

    def _last_error(self) -> str:
        return self._log.last_error


def _create_log(trt: Any) -> Any:
    class Log(trt.ILogger):
        """TensorRT tells the reason of a failure to its log alone."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.last_error = ""

        def log(self, severity: Any, message: str) -> None:
            if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                self.last_error = message
                runtime.log("error", message)
            elif severity == trt.ILogger.Severity.WARNING:
                runtime.log("warning", message)

    return Log()
