"""The backend `tensorflow`: SavedModels (model.savedmodel) and frozen graphs (model.graphdef). Parameters, rules and
texts are those of Triton's tensorflow_backend. Made by host.py."""
import json
import os
from typing import Any, Dict, List, Tuple

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

_DATA_TYPES = {
    "bool": "TYPE_BOOL",
    "uint8": "TYPE_UINT8",
    "uint16": "TYPE_UINT16",
    "uint32": "TYPE_UINT32",
    "uint64": "TYPE_UINT64",
    "int8": "TYPE_INT8",
    "int16": "TYPE_INT16",
    "int32": "TYPE_INT32",
    "int64": "TYPE_INT64",
    "float16": "TYPE_FP16",
    "float32": "TYPE_FP32",
    "float64": "TYPE_FP64",
    "string": "TYPE_STRING",
    "bfloat16": "TYPE_BF16",
}
_SERVING_DEFAULT = "serving_default"


class TensorflowModel(FrameworkModel):
    execute_failure = "TensorFlow execute failure"
    default_filename = "model.savedmodel"

    def import_framework(self) -> None:
        # Its notes about the machine are no news for the log; the user's own setting stays.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        self._tf = import_package("tensorflow", "tensorflow", "tensorflow")
        self._function: Any = None
        self._session: Any = None
        self._set_devices()

    def complete(self, config: Dict[str, Any]) -> Dict[str, Any]:
        # A frozen graph does not say which of its tensors are meant.
        if self._is_graphdef():
            return config
        self._open_saved_model()
        return complete_from_signature(config, self._signature(), self.default_max_batch_size())

    def start(self) -> None:
        self._types = {tensor["name"]: tensor["data_type"] for tensor in self.config["output"]}
        if self._is_graphdef():
            self._open_graph()
            return
        self._open_saved_model()
        signature = self._signature()
        check_names(self.config, signature)
        check_tensors(self.config, signature)

    def run(self, inputs: Arrays) -> Arrays:
        if self._session is None:
            with self._tf.device(self._device):
                tensors = {name: self._tf.constant(self._values_of(array)) for name, array in inputs.items()}
                results = {name: tensor.numpy() for name, tensor in self._function(**tensors).items()}
        else:
            feeds = {"%s:0" % name: self._values_of(array) for name, array in inputs.items()}
            results = self._session.run({name: "%s:0" % name for name in self._types}, feeds)
        return {name: self._to_array(name, results[name]) for name in self._types}

    def _is_graphdef(self) -> bool:
        platform = self.config.get("platform", "")
        if platform not in ("", "tensorflow_savedmodel", "tensorflow_graphdef"):
            raise StatusError(
                "INVALID_ARG",
                "platform %s not supported for TensorFlow model '%s'" % (platform, self.model_name),
            )
        filename = self.config.get("default_model_filename", "")
        return platform == "tensorflow_graphdef" or (platform == "" and filename.endswith(".graphdef"))

    def _set_devices(self) -> None:
        """Once for the process, before TensorFlow touches a device."""
        tf, parameters = self._tf, self.parameters
        intra = parameters.count("TF_NUM_INTRA_THREADS") or self.placement["threadCount"]
        tf.config.threading.set_intra_op_parallelism_threads(intra)
        tf.config.threading.set_inter_op_parallelism_threads(parameters.count("TF_NUM_INTER_THREADS") or 0)
        # With KIND_MODEL the graph says where its operations run.
        self._device = None if self.placement["kind"] == "KIND_MODEL" else "/CPU:0"
        gpus = tf.config.list_physical_devices("GPU")
        if self.placement["kind"] == "KIND_CPU":
            tf.config.set_visible_devices([], "GPU")
        elif self.placement["kind"] == "KIND_GPU":
            device_id = self.placement["deviceId"]
            if device_id >= len(gpus):
                raise StatusError(
                    "INTERNAL",
                    "unable to load model '%s' on GPU %d: tensorflow %s finds %d GPUs"
                    % (self.model_name, device_id, tf.__version__, len(gpus)),
                )
            tf.config.set_visible_devices(gpus[device_id], "GPU")
            # It would take the whole memory of the device otherwise, and other models run there too.
            tf.config.experimental.set_memory_growth(gpus[device_id], True)
            self._device = "/GPU:0"
        # Operations without a kernel for the device run on the CPU.
        tf.config.set_soft_device_placement(self.load["backendConfig"].get("allow-soft-placement") != "false")

    def _open_saved_model(self) -> None:
        if self._function is not None:
            return
        path, parameters = self.find_file(), self.parameters
        with self._tf.device(self._device):
            tag = parameters.text("TF_GRAPH_TAG")
            # The function does not keep the object alive whose variables it reads.
            self._saved = self._tf.saved_model.load(path, tags=[tag] if tag else None)
        self._function = self._find_signature(parameters.text("TF_SIGNATURE_DEF"))

    def _find_signature(self, wanted: str) -> Any:
        signatures = self._saved.signatures
        name = wanted or _SERVING_DEFAULT
        if name in signatures:
            return signatures[name]
        others = sorted(other for other in signatures if not other.startswith("__"))
        if wanted or not others:
            raise StatusError(
                "INVALID_ARG", "unable to load model '%s', expected '%s' signature" % (self.model_name, name)
            )
        runtime.log("warning", "unable to find serving signature '%s', using signature '%s'" % (name, others[0]))
        return signatures[others[0]]

    def _signature(self) -> Signature:
        inputs: Dict[str, Any] = self._function.structured_input_signature[1]
        outputs: Dict[str, Any] = self._function.structured_outputs
        return Signature(
            [_spec_of(name, inputs[name]) for name in sorted(inputs)],
            [_spec_of(name, outputs[name]) for name in sorted(outputs)],
        )

    def _open_graph(self) -> None:
        v1 = self._tf.compat.v1
        definition = v1.GraphDef()
        with open(self.find_file(), "rb") as file:
            definition.ParseFromString(file.read())
        graph = self._tf.Graph()
        with graph.as_default(), graph.device(self._device):
            self._tf.import_graph_def(definition, name="")
        check_names(self.config, self._graph_signature(definition))
        parameters = self.parameters
        options = v1.ConfigProto(
            allow_soft_placement=True,
            intra_op_parallelism_threads=parameters.count("TF_NUM_INTRA_THREADS") or self.placement["threadCount"],
            inter_op_parallelism_threads=parameters.count("TF_NUM_INTER_THREADS") or 0,
            use_per_session_threads=bool(parameters.flag("TF_USE_PER_SESSION_THREADS")),
        )
        options.gpu_options.allow_growth = True
        self._session = v1.Session(graph=graph, config=options)
        for operation in self._init_operations():
            self._session.run(operation)

    def _graph_signature(self, definition: Any) -> Signature:
        """Placeholders are the inputs; any node may be an output."""
        placeholders = [node.name for node in definition.node if node.op == "Placeholder"]
        if len(self.config["input"]) > len(placeholders):
            raise StatusError(
                "INVALID_ARG",
                "unable to load model '%s', configuration expects %d inputs, model provides at most %d"
                % (self.model_name, len(self.config["input"]), len(placeholders)),
            )
        # A graph may have placeholders that the wanted outputs do not need.
        named = [tensor["name"] for tensor in self.config["input"]]
        inputs = named if all(name in placeholders for name in named) else placeholders
        return Signature(_bare_specs(inputs), _bare_specs([node.name for node in definition.node]))

    def _init_operations(self) -> List[str]:
        filename = self.parameters.text("TF_INIT_OPS_FILE")
        if filename == "":
            return []
        folders = (self.load["versionDirectory"], self.load["modelDirectory"])
        paths = [os.path.join(folder, filename) for folder in folders]
        with open(next((path for path in paths if os.path.exists(path)), paths[0]), encoding="utf-8") as file:
            return json.load(file)["init_ops"]

    def _values_of(self, array: Array) -> np.ndarray:
        if array.datatype == TYPE_BF16:
            return array.values.view(self._tf.bfloat16.as_numpy_dtype)
        return array.values

    def _to_array(self, name: str, values: Any) -> Array:
        data_type, array = _numpy_array(values)
        if data_type != self._types[name]:
            raise StatusError(
                "INVALID_ARG",
                "unexpected datatype %s for inference output '%s', expecting %s"
                % (data_type, name, self._types[name]),
            )
        return Array(DATATYPE_NUMBERS[data_type], array.view(np.uint16) if data_type == "TYPE_BF16" else array)


def _numpy_array(values: Any) -> Tuple[str, np.ndarray]:
    array = np.asarray(values)
    # A single text comes as bytes, which numpy would make into an array of its own kind.
    if array.dtype.kind in "SO":
        return "TYPE_STRING", np.asarray(values, dtype=np.object_)
    return _DATA_TYPES.get(array.dtype.name, "TYPE_INVALID"), array


def _spec_of(name: str, tensor: Any) -> TensorSpec:
    shape = None if tensor.shape.rank is None else [-1 if dim is None else dim for dim in tensor.shape]
    return TensorSpec(name, _DATA_TYPES.get(tensor.dtype.name, "TYPE_INVALID"), shape)


def _bare_specs(names: List[str]) -> List[TensorSpec]:
    return [TensorSpec(name, "TYPE_INVALID", None) for name in names]
