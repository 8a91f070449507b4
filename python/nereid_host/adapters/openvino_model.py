"""The backend `openvino`: model.xml with model.bin, and what else OpenVINO reads (.onnx, .pdmodel, a SavedModel).
Parameters, rules and texts are those of Triton's openvino_backend. Made by host.py."""
from typing import Any, Dict, List, Optional

import numpy as np

from nereid_host.adapters.array_batch import Array, Arrays
from nereid_host.adapters.framework_model import FrameworkModel, import_package
from nereid_host.adapters.signature import (
    Signature,
    TensorSpec,
    add_dynamic_batching,
    check_names,
    check_shape,
    dims_of,
    new_tensor,
)
from nereid_host.runtime import runtime
from nereid_host.status import StatusError
from nereid_host.tensor import DATATYPE_NUMBERS, TYPE_BF16

_DATA_TYPES = {
    "boolean": "TYPE_BOOL",
    "u8": "TYPE_UINT8",
    "u16": "TYPE_UINT16",
    "u32": "TYPE_UINT32",
    "u64": "TYPE_UINT64",
    "i8": "TYPE_INT8",
    "i16": "TYPE_INT16",
    "i32": "TYPE_INT32",
    "i64": "TYPE_INT64",
    "f16": "TYPE_FP16",
    "f32": "TYPE_FP32",
    "f64": "TYPE_FP64",
    "bf16": "TYPE_BF16",
}
_ELEMENTS = {data_type: element for element, data_type in _DATA_TYPES.items()}


class OpenvinoModel(FrameworkModel):
    execute_failure = "OpenVINO execute failure"
    default_filename = "model.xml"

    def import_framework(self) -> None:
        self._ov = import_package("openvino", "openvino", "openvino")
        self._core = self._ov.Core()

    def complete(self, config: Dict[str, Any]) -> Dict[str, Any]:
        model = self._core.read_model(self.find_file())
        if self._has_batch(model):
            if config["max_batch_size"] == 0:
                config["max_batch_size"] = max(self.default_max_batch_size(), 1)
            add_dynamic_batching(config)
        elif config["max_batch_size"] != 0:
            runtime.log(
                "warning",
                "model layout for model %s does not support batching while non-zero max_batch_size is specified"
                % self.model_name,
            )
        signature = _signature_of(model)
        is_batching = config["max_batch_size"] > 0
        for kind, specs in (("input", signature.inputs), ("output", signature.outputs)):
            if not config[kind]:
                config[kind] = [new_tensor(spec, is_batching) for spec in specs]
        return config

    def start(self) -> None:
        if self.placement["kind"] != "KIND_CPU":
            raise StatusError(
                "INVALID_ARG",
                "unable to load model '%s', Triton OpenVINO backend supports only Kind CPU and AUTO" % self.model_name,
            )
        parameters = self.parameters
        self._device = parameters.text("TARGET_DEVICE", "CPU").upper()
        self._is_static_batch = bool(parameters.flag("SKIP_OV_DYNAMIC_BATCHSIZE"))
        self._is_padding = bool(parameters.flag("ENABLE_BATCH_PADDING"))
        if parameters.text("CPU_EXTENSION_PATH"):
            self._core.add_extension(parameters.text("CPU_EXTENSION_PATH"))
        self._set_properties(self._device.split(":")[0])
        model = self._core.read_model(self.find_file())
        check_names(self.config, _signature_of(model))
        model = self._shaped(model)
        self._compiled = self._core.compile_model(model, self._device)
        self._request = self._compiled.create_infer_request()

    def run(self, inputs: Arrays) -> Arrays:
        pad_count = self._pad_count(inputs)
        feeds = {name: self._tensor_of(array, pad_count) for name, array in inputs.items()}
        self._request.infer(feeds, share_inputs=True)
        outputs: Arrays = {}
        for tensor in self.config["output"]:
            # A copy: the next run writes into the same memory.
            values = np.array(self._request.get_tensor(tensor["name"]).data)
            datatype = DATATYPE_NUMBERS[tensor["data_type"]]
            if datatype == TYPE_BF16:
                values = values.view(np.uint16)
            outputs[tensor["name"]] = Array(datatype, values[: len(values) - pad_count] if pad_count else values)
        return outputs

    def _has_batch(self, model: Any) -> bool:
        """Only a layout tells: a free first dimension may be anything."""
        helpers = self._ov.layout_helpers
        return all(helpers.has_batch(helpers.get_layout(port)) for port in (*model.inputs, *model.outputs))

    def _set_properties(self, device: str) -> None:
        known = self._core.get_property(device, "SUPPORTED_PROPERTIES")
        for name, value in self._properties().items():
            if name in known:
                self._core.set_property(device, {name: value})
            else:
                # COMPILATION_NUM_THREADS on a CPU is such a one in new versions.
                runtime.log("warning", "OpenVINO's %s has no property %s, which is left out" % (device, name))

    def _properties(self) -> Dict[str, Any]:
        parameters = self.parameters
        properties: Dict[str, Any] = {}
        threads = parameters.count("INFERENCE_NUM_THREADS")
        if self._device == "CPU":
            threads = threads or self.placement["threadCount"]
        if threads is not None:
            properties["INFERENCE_NUM_THREADS"] = threads
        compilation = parameters.count("COMPILATION_NUM_THREADS")
        if compilation is not None:
            properties["COMPILATION_NUM_THREADS"] = compilation
        if self._choice("HINT_BF16", ("YES",), "YES") is not None:
            properties["INFERENCE_PRECISION_HINT"] = self._ov.Type.bf16
        hint = self._choice("PERFORMANCE_HINT", ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"))
        if hint is not None:
            properties["PERFORMANCE_HINT"] = hint
        streams = self.parameters.text("NUM_STREAMS").upper()
        if streams != "":
            if not streams.isdigit():
                self._choice("NUM_STREAMS", ("AUTO", "NUMA"), "either AUTO/NUMA/<int_value>")
            properties["NUM_STREAMS"] = streams
        return properties

    def _choice(self, name: str, allowed: Any, allowed_text: str = "") -> Optional[str]:
        value = self.parameters.text(name)
        if value == "":
            return None
        if value.upper() not in allowed:
            raise StatusError(
                "INVALID_ARG",
                "expected the parameter '%s' to be %s, got %s"
                % (name, allowed_text or "/".join(allowed), value.lower()),
            )
        return value.upper()

    def _shaped(self, model: Any) -> Any:
        """The model with the datatypes of the config, which OpenVINO converts to, and with its batch."""
        is_batching = self.config["max_batch_size"] > 0
        if self.parameters.flag("RESHAPE_IO_LAYERS"):
            model.reshape(self._wanted_shapes(model, is_batching))
        processor = self._ov.preprocess.PrePostProcessor(model)
        for tensor in self.config["input"]:
            settings = processor.input(tensor["name"]).tensor()
            settings.set_element_type(self._element_of(tensor, "input"))
            shape = _dims_of_port(model.input(tensor["name"]))
            check_shape(self.config, tensor, _without_batch(shape, is_batching), is_exact=False)
            if is_batching:
                settings.set_layout(self._ov.Layout("N..."))
        for tensor in self.config["output"]:
            processor.output(tensor["name"]).tensor().set_element_type(self._element_of(tensor, "output"))
        built = processor.build()
        if is_batching:
            self._ov.set_batch(built, self.config["max_batch_size"] if self._is_static_batch else -1)
        for tensor in self.config["output"]:
            shape = _dims_of_port(built.output(tensor["name"]))
            # Not exact: where one dimension is free, completion leaves all free.
            check_shape(self.config, tensor, _without_batch(shape, is_batching), is_exact=False)
        return built

    def _wanted_shapes(self, model: Any, is_batching: bool) -> Dict[str, Any]:
        shapes: Dict[str, Any] = {}
        for tensor in self.config["input"]:
            batch = _dims_of_port(model.input(tensor["name"]))[:1] if is_batching else []
            shapes[tensor["name"]] = self._ov.PartialShape([*batch, *dims_of(tensor)])
        return shapes

    def _element_of(self, tensor: Dict[str, Any], kind: str) -> Any:
        element = _ELEMENTS.get(tensor["data_type"])
        if element is None:
            raise StatusError(
                "INTERNAL",
                "unsupported datatype %s for %s '%s' for model '%s'"
                % (tensor["data_type"], kind, tensor["name"], self.model_name),
            )
        return getattr(self._ov.Type, element)

    def _pad_count(self, inputs: Arrays) -> int:
        """Rows that a model with a fixed batch needs beyond those that came."""
        batch_size = self.config["max_batch_size"]
        if batch_size == 0 or not self._is_static_batch:
            return 0
        rows = next((array.values.shape[0] for array in inputs.values()), batch_size)
        if rows != batch_size and not self._is_padding:
            raise StatusError(
                "INTERNAL",
                "expected requests with batch size '%d', got '%d'... this error can be avoided by setting "
                "'ENABLE_BATCH_PADDING' parameter in model configuration to 'YES' at a performance cost."
                % (batch_size, rows),
            )
        return batch_size - rows

    def _tensor_of(self, array: Array, pad_count: int) -> Any:
        values = array.values
        if pad_count > 0:
            values = np.concatenate([values, np.zeros((pad_count, *values.shape[1:]), values.dtype)])
        if array.datatype != TYPE_BF16:
            return self._ov.Tensor(np.ascontiguousarray(values), shared_memory=True)
        return self._ov.Tensor(np.ascontiguousarray(values), list(values.shape), self._ov.Type.bf16)


def _signature_of(model: Any) -> Signature:
    return Signature([_spec_of(port) for port in model.inputs], [_spec_of(port) for port in model.outputs])


def _spec_of(port: Any) -> TensorSpec:
    """Triton leaves all dimensions free as soon as one is."""
    shape = _dims_of_port(port)
    if port.partial_shape.is_dynamic:
        shape = [-1] * len(shape)
    data_type = _DATA_TYPES.get(port.element_type.get_type_name(), "TYPE_INVALID")
    return TensorSpec(port.any_name, data_type, shape)


def _dims_of_port(port: Any) -> List[int]:
    if port.partial_shape.rank.is_dynamic:
        raise ValueError("the number of dimensions of '%s' is not known" % port.any_name)
    return [-1 if dim.is_dynamic else dim.get_length() for dim in port.partial_shape]


def _without_batch(shape: List[int], is_batching: bool) -> List[int]:
    """The batch dimension is set by us, whatever the model said."""
    return [-1, *shape[1:]] if is_batching and shape else shape
