"""The functions about configs and types, and the builder that auto_complete_config is given."""
import json

import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, raised

CONFIG = {
    "name": "m",
    "max_batch_size": 4,
    "input": [{"name": "I", "data_type": "TYPE_FP32", "dims": [4], "optional": False}],
    "output": [{"name": "O", "data_type": "TYPE_INVALID", "dims": []}],
}
FP32 = {"name": "X", "data_type": "TYPE_FP32", "dims": [2]}
NAMES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "STRING"]


def builder(**more):
    return pb_utils.ModelConfig(json.dumps({**CONFIG, **more}))


def after(config, method, *args):
    """What the config is afterwards, or why it was refused."""
    said = raised(getattr(config, method), *args)
    return said if said is not None else config.as_dict()


def without(name):
    return {key: value for key, value in FP32.items() if key != name}


class TritonPythonModel(StepModel):
    def batch_size(self, _):
        return [after(builder(), "set_max_batch_size", size) for size in (8, 4, 2)]

    def dynamic_batching(self, _):
        return [
            after(builder(), "set_dynamic_batching"),
            after(builder(dynamic_batching={"preferred_batch_size": [2]}), "set_dynamic_batching"),
            after(builder(sequence_batching={}), "set_dynamic_batching"),
            after(builder(ensemble_scheduling={}), "set_dynamic_batching"),
        ]

    def inputs(self, _):
        known = {"name": "I", "data_type": "TYPE_FP32", "dims": [4]}
        return [
            after(builder(), "add_input", FP32),
            after(builder(), "add_input", {**FP32, "optional": True}),
            after(builder(), "add_input", known),
            after(builder(), "add_input", {**known, "optional": True}),
            after(builder(), "add_input", {**known, "dims": [16]}),
            after(builder(), "add_input", {**known, "data_type": "TYPE_INT8"}),
            after(builder(), "add_input", {**FP32, "other": 1}),
            after(builder(), "add_input", {"other": 1}),
            *[after(builder(), "add_input", without(name)) for name in ("name", "data_type", "dims")],
        ]

    def outputs(self, _):
        known = {"name": "O", "data_type": "TYPE_FP32", "dims": [4]}
        return [
            after(builder(), "add_output", FP32),
            after(builder(), "add_output", known),
            after(builder(), "add_output", {**FP32, "optional": True}),
            *[after(builder(), "add_output", without(name)) for name in ("name", "data_type", "dims")],
            after(builder(output=[known]), "add_output", {**known, "dims": [5]}),
            after(builder(output=[known]), "add_output", {**known, "data_type": "TYPE_INT8"}),
        ]

    def transaction_policy(self, _):
        is_set = {"model_transaction_policy": {"decoupled": False}}
        return [
            after(builder(), "set_model_transaction_policy", {"decoupled": True}),
            after(builder(), "set_model_transaction_policy", {}),
            after(builder(), "set_model_transaction_policy", {"other": 1}),
            after(builder(**is_set), "set_model_transaction_policy", {"decoupled": True}),
            after(builder(**is_set), "set_model_transaction_policy", {"decoupled": False}),
        ]

    def by_name(self, _):
        return [
            pb_utils.get_input_config_by_name(CONFIG, "I"),
            pb_utils.get_input_config_by_name(CONFIG, "O"),
            pb_utils.get_output_config_by_name(CONFIG, "O"),
            pb_utils.get_output_config_by_name(CONFIG, "I"),
            pb_utils.get_input_config_by_name({}, "I"),
            pb_utils.using_decoupled_model_transaction_policy(CONFIG),
            pb_utils.using_decoupled_model_transaction_policy({"model_transaction_policy": {"decoupled": True}}),
        ]

    def types(self, _):
        numpy_types = [pb_utils.triton_string_to_numpy("TYPE_" + name) for name in NAMES]
        return {
            "strings": [np.dtype(numpy_type).name for numpy_type in numpy_types],
            "table": sorted(pb_utils.TRITON_STRING_TO_NUMPY),
            "unknown": raised(pb_utils.triton_string_to_numpy, "TYPE_BF16"),
            "to_numpy": [np.dtype(pb_utils.triton_to_numpy_type(number)).name for number in range(1, 14)],
            "to_numpy_none": [pb_utils.triton_to_numpy_type(number) for number in (0, 14, 15)],
            "to_triton": [pb_utils.numpy_to_triton_type(numpy_type) for numpy_type in numpy_types[1:]],
            "of_bytes": pb_utils.numpy_to_triton_type(np.bytes_),
            "of_dtype": pb_utils.numpy_to_triton_type(np.dtype("float32")),
            "of_complex": pb_utils.numpy_to_triton_type(np.complex64),
        }

    def type_of_bool(self, _):
        return {"numpy": pb_utils.numpy_to_triton_type(np.bool_), "python": pb_utils.numpy_to_triton_type(bool)}

    def byte_tensors(self, _):
        values = np.array([["é", b"\x00\xff"], ["", 12]], np.object_)
        encoded = pb_utils.serialize_byte_tensor(values)
        fixed = pb_utils.serialize_byte_tensor(np.array([b"ab", b"c"]))
        return {
            "type": type(encoded).__name__,
            "encoded": encoded.hex(),
            "fixed": fixed.hex(),
            "none": repr(pb_utils.serialize_byte_tensor(np.zeros(0, np.object_))),
            "other": pb_utils.serialize_byte_tensor(np.zeros(2, np.float32)),
            "decoded": repr(pb_utils.deserialize_bytes_tensor(encoded).tolist()),
            "decoded_none": repr(pb_utils.deserialize_bytes_tensor(b"").tolist()),
            "cut": raised(pb_utils.deserialize_bytes_tensor, encoded[:-1]).split(":")[0],
        }

    def constants(self, _):
        names = [name for name in dir(pb_utils) if name.startswith("TRITONSERVER_")]
        return {name: int(getattr(pb_utils, name)) for name in names}

    def names(self, _):
        """Every public name of the module and of its classes."""
        public = {}
        for name in dir(pb_utils):
            value = getattr(pb_utils, name)
            if name.startswith("_") or type(value).__name__ == "module":
                continue
            is_class = isinstance(value, type)
            public[name] = sorted(set(dir(value)) - set(dir(Exception))) if is_class else []
            public[name] = [member for member in public[name] if not member.startswith("_")]
        return public
