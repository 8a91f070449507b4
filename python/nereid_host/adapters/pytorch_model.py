"""The backend `pytorch`: TorchScript (model.pt), programs and packages (model.pt2), and with `runtime: "model.py"`
classes in Python. Parameters and texts are those of Triton's pytorch_backend. Made by host.py."""
from contextlib import ExitStack
from typing import Any, List

import numpy as np

from nereid_host.adapters.array_batch import Array, Arrays, text_array
from nereid_host.adapters.framework_model import FrameworkModel, import_package
from nereid_host.adapters.torch_names import bad_output, pick_outputs
from nereid_host.status import StatusError
from nereid_host.tensor import DATATYPE_NUMBERS, TYPE_BF16, TYPE_BYTES

_TORCH_NAMES = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_UINT16": "uint16",
    "TYPE_UINT32": "uint32",
    "TYPE_UINT64": "uint64",
    "TYPE_INT8": "int8",
    "TYPE_INT16": "int16",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_FP64": "float64",
    "TYPE_BF16": "bfloat16",
}


class PytorchModel(FrameworkModel):
    execute_failure = "PyTorch execute failure"
    default_filename = "model.pt"

    def import_framework(self) -> None:
        self._torch = import_package("pytorch", "torch", "torch")
        # Older versions of torch do not have all of them.
        self._dtypes = {
            name: getattr(self._torch, torch_name)
            for name, torch_name in _TORCH_NAMES.items()
            if hasattr(self._torch, torch_name)
        }
        self._data_types = {dtype: name for name, dtype in self._dtypes.items()}

    def start(self) -> None:
        from nereid_host.adapters import torch_files

        self._check_datatypes()
        self._output_names = [tensor["name"] for tensor in self.config["output"]]
        self._output_types = {tensor["name"]: tensor["data_type"] for tensor in self.config["output"]}
        self._device = self._find_device()
        is_class = self.config.get("runtime") == "model.py"
        self._set_threads(is_class)
        self._set_modes()
        with self._guards():
            if is_class:
                self._call = torch_files.open_class(self.load["versionDirectory"], self.config, self._device)
            else:
                path = self.find_file()
                is_package = path.endswith(".pt2") or self.config.get("platform") == "torch_aoti"
                open_file = torch_files.open_package if is_package else torch_files.open_script
                self._call = open_file(path, self.config, self._device)

    def run(self, inputs: Arrays) -> Arrays:
        with self._guards():
            result = self._call({name: self._to_torch(array) for name, array in inputs.items()})
            picked = pick_outputs(result, self._output_names)
            outputs = {name: self._to_array(name, value) for name, value in picked.items()}
            del result, picked
        if self._is_cache_cleaned:
            self._torch.cuda.empty_cache()
        return outputs

    def _check_datatypes(self) -> None:
        for kind in ("input", "output"):
            for tensor in self.config[kind]:
                data_type = tensor["data_type"]
                if data_type != "TYPE_STRING" and data_type not in self._dtypes:
                    raise StatusError(
                        "INTERNAL",
                        "unsupported datatype %s for %s '%s' for model '%s'"
                        % (data_type, kind, tensor["name"], self.model_name),
                    )

    def _find_device(self) -> Any:
        """None for KIND_MODEL: the model places itself."""
        kind = self.placement["kind"]
        if kind == "KIND_MODEL":
            return None
        if kind != "KIND_GPU":
            return self._torch.device("cpu")
        if not self._torch.cuda.is_available():
            raise StatusError(
                "INTERNAL",
                "unable to load model '%s' on GPU %d: torch %s finds no CUDA device"
                % (self.model_name, self.placement["deviceId"], self._torch.__version__),
            )
        device = self._torch.device("cuda", self.placement["deviceId"])
        self._torch.cuda.set_device(device)
        return device

    def _set_threads(self, is_class: bool) -> None:
        parameters = self.parameters
        if is_class:
            intra, inter = parameters.count("NUM_THREADS") or 1, parameters.count("NUM_INTEROP_THREADS") or 1
        else:
            intra = parameters.count("INTRA_OP_THREAD_COUNT") or self.placement["threadCount"]
            inter = parameters.count("INTER_OP_THREAD_COUNT") or 0
        self._torch.set_num_threads(intra)
        if inter > 0:
            self._torch.set_num_interop_threads(inter)

    def _set_modes(self) -> None:
        """All of them for the whole process or for this thread; the process serves one instance on one thread."""
        parameters, internals = self.parameters, self._torch._C
        self._is_inference_mode = parameters.flag("INFERENCE_MODE") is not False
        is_cuda = self._device is None or self._device.type == "cuda"
        self._is_cache_cleaned = bool(parameters.flag("ENABLE_CACHE_CLEANING")) and is_cuda
        if parameters.flag("DISABLE_CUDNN"):
            self._torch.backends.cudnn.enabled = False
        internals._set_graph_executor_optimize(not parameters.flag("DISABLE_OPTIMIZED_EXECUTION"))
        for name, switch in (
            ("ENABLE_JIT_EXECUTOR", internals._jit_set_profiling_executor),
            ("ENABLE_JIT_PROFILING", internals._jit_set_profiling_mode),
            ("ENABLE_TENSOR_FUSER", internals._jit_set_texpr_fuser_enabled),
        ):
            value = parameters.flag(name)
            if value is not None:
                switch(value)

    def _guards(self) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(self._torch.inference_mode(self._is_inference_mode))
        stack.enter_context(self._torch.no_grad())
        return stack

    def _to_torch(self, array: Array) -> Any:
        """A tensor on the model's device; texts, which torch has no tensors for, as a list."""
        if array.datatype == TYPE_BYTES:
            return [item.decode("utf-8") for item in array.values.ravel().tolist()]
        if array.datatype == TYPE_BF16:
            tensor = self._torch.from_numpy(array.values.view(np.int16)).view(self._torch.bfloat16)
        else:
            tensor = self._torch.from_numpy(array.values)
        return tensor if self._device is None else tensor.to(self._device)

    def _to_array(self, name: str, value: Any) -> Array:
        expected = self._output_types[name]
        if isinstance(value, list):
            texts = [item if isinstance(item, bytes) else str(item).encode("utf-8") for item in value]
            return text_array(self._checked_texts(name, expected, texts))
        if not isinstance(value, self._torch.Tensor):
            raise bad_output(value)
        data_type = self._data_types.get(value.dtype, "TYPE_INVALID")
        if data_type != expected:
            raise self._datatype_error(name, expected, data_type)
        if value.dim() == 0:
            raise StatusError("INVALID_ARG", "output '%s' is a scalar which is not supported." % name)
        tensor = value.detach().cpu().contiguous()
        if data_type == "TYPE_BF16":
            return Array(TYPE_BF16, tensor.view(self._torch.int16).numpy().view(np.uint16))
        return Array(DATATYPE_NUMBERS[data_type], tensor.numpy())

    def _checked_texts(self, name: str, expected: str, texts: List[bytes]) -> List[bytes]:
        if expected != "TYPE_STRING":
            raise self._datatype_error(name, expected, "TYPE_STRING")
        return texts

    def _datatype_error(self, name: str, expected: str, provided: str) -> StatusError:
        return StatusError(
            "INVALID_ARG",
            "configuration expects datatype %s for output '%s', model provides %s" % (expected, name, provided),
        )
