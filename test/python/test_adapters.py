"""The parts of the framework adapters that need no framework: batches, names, signatures, parameters."""
import unittest

import numpy as np
from nereid_host.adapters import find_adapter
from nereid_host.adapters.array_batch import Array, arrays_of, can_join, join, row_count_of, split, tensor_of
from nereid_host.adapters.framework_model import FrameworkModel, import_package
from nereid_host.adapters.parameters import Parameters
from nereid_host.adapters.signature import (
    Signature,
    TensorSpec,
    check_names,
    check_tensors,
    complete_from_signature,
)
from nereid_host.adapters.torch_names import leaves_of, pick_outputs, positions_of
from nereid_host.status import StatusError
from nereid_host.tensor import TYPE_BF16, Tensor


def received(rows, buffer=None, at=0):
    """Rows of two floats, as a frame brings them."""
    data = np.arange(rows * 2, dtype=np.float32).view(np.uint8) if buffer is None else buffer[at : at + rows * 8]
    return arrays_of([Tensor.received("x", 11, (rows, 2), data)])


class BatchTest(unittest.TestCase):
    def test_rows_side_by_side_are_joined_without_a_copy(self):
        buffer = np.arange(10, dtype=np.float32).view(np.uint8).copy()
        joined = join([received(2, buffer, 0), received(3, buffer, 16)])["x"].values
        self.assertEqual(joined.tolist(), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]])
        self.assertTrue(np.shares_memory(joined, buffer))

    def test_rows_from_elsewhere_are_copied(self):
        buffer = np.arange(10, dtype=np.float32).view(np.uint8).copy()
        for requests in ([received(2), received(1)], [received(2, buffer, 16), received(1, buffer, 0)]):
            joined = join(requests)["x"].values
            want = np.concatenate([request["x"].values for request in requests])
            self.assertEqual(joined.tolist(), want.tolist())
            self.assertFalse(np.shares_memory(joined, buffer))

    def test_only_requests_of_one_shape_are_joined(self):
        other = {"x": Array(11, np.zeros((1, 3), np.float32))}
        whole = {"x": Array(8, np.zeros((1, 2), np.int32))}
        self.assertTrue(can_join([received(1), received(5)]))
        for request in (other, whole, {}, {**received(1), "y": other["x"]}):
            self.assertFalse(can_join([received(1), request]))

    def test_outputs_are_split_by_the_rows_of_the_requests(self):
        array = Array(11, np.arange(6, dtype=np.float32).reshape(3, 2))
        self.assertEqual([part.values.tolist() for part in split(array, [1, 2])], [[[0, 1]], [[2, 3], [4, 5]]])
        self.assertEqual(row_count_of(received(3)), 3)
        with self.assertRaisesRegex(ValueError, "an output of shape \\[3, 2\\] for a batch of 4"):
            split(array, [2, 2])

    def test_bfloat16_passes_as_its_bits(self):
        bits = np.array([[0x3FC0, 0xC000]], np.uint16)
        arrays = arrays_of([Tensor.received("x", TYPE_BF16, (1, 2), bits.view(np.uint8).reshape(-1))])
        self.assertEqual(arrays["x"].values.tolist(), bits.tolist())
        tensor = tensor_of("y", arrays["x"])
        self.assertEqual((tensor.triton_dtype(), tensor.shape()), (TYPE_BF16, [1, 2]))
        self.assertEqual(bytes(tensor.to_bytes()), bits.tobytes())


class Doubler(FrameworkModel):
    """Its framework is numpy."""

    def import_framework(self):
        self.run_rows = []

    def start(self):
        if self.config["name"] == "broken":
            raise OSError("the disk is gone")

    def run(self, inputs):
        values = inputs["x"].values
        self.run_rows.append(len(values))
        if values.max() > 100:
            raise RuntimeError("too large")
        return {"y": Array(11, values * 2)}


class Request:
    def __init__(self, value):
        self._tensor = Tensor("x", np.full((1, 2), value, np.float32))

    def inputs(self):
        return [self._tensor]


def model_of(max_batch_size, name="m"):
    config = {"name": name, "max_batch_size": max_batch_size, "input": [], "output": []}
    load = {"placement": {"name": "m_0"}, "modelName": name, "config": config, "versionDirectory": ""}
    model = Doubler(load)
    model.initialize(config)
    return model


class FrameworkModelTest(unittest.TestCase):
    def test_requests_run_together_where_the_model_batches(self):
        for max_batch_size, rows in ((4, [3]), (0, [1, 1, 1])):
            model = model_of(max_batch_size)
            responses = model.execute([Request(value) for value in (1, 2, 3)])
            got = [response.output_tensors()[0].as_numpy().tolist() for response in responses]
            self.assertEqual((got, model.run_rows), ([[[2, 2]], [[4, 4]], [[6, 6]]], rows))

    def test_a_failure_is_that_of_the_requests_that_ran_together(self):
        texts = [error.message for error in model_of(4).execute([Request(1), Request(101)])]
        self.assertEqual(texts, ["execute failure: too large"] * 2)
        first, second = model_of(0).execute([Request(1), Request(101)])
        self.assertFalse(first.has_error())
        self.assertEqual((second.code, second.message), ("INTERNAL", "execute failure: too large"))

    def test_a_failed_load_names_the_model_and_the_reason(self):
        with self.assertRaisesRegex(StatusError, "^failed to load model 'broken': the disk is gone$"):
            model_of(0, "broken")

    def test_a_missing_framework_comes_with_the_command(self):
        with self.assertRaisesRegex(StatusError, "install it with: .* -m pip install no-such-thing$"):
            import_package("x", "no_such_module", "no-such-thing")

    def test_models_in_python_have_no_adapter(self):
        self.assertIsNone(find_adapter("python"))
        self.assertEqual(find_adapter("pytorch").__name__, "PytorchModel")


class NamesTest(unittest.TestCase):
    def test_inputs_by_argument_by_number_and_by_order(self):
        self.assertEqual(positions_of(["b", "a"], ["a", "b"]), [1, 0])
        self.assertEqual(positions_of(["IN__1", "OTHER__0"], ["a", "b"]), [1, 0])
        self.assertEqual(positions_of(["IN__1", "a"], ["a", "b"]), [0, 1])
        self.assertEqual(positions_of(["a__b__0", "c__1"]), [0, 1])

    def test_trees_are_walked_in_order(self):
        tree = {"z": (1, [2, {"k": 3}]), "a": ["x", "y"]}
        want = [("R[z][0]", 1), ("R[z][1][0]", 2), ("R[z][1][1][k]", 3), ("R[a]", ["x", "y"])]
        self.assertEqual(leaves_of(tree, "R"), want)

    def test_outputs_by_key_by_path_and_by_number(self):
        self.assertEqual(pick_outputs({"p": 1, "q": 2}, ["q"]), {"q": 2})
        self.assertEqual(pick_outputs((1, {"k": 2}), ["RESULT[1][k]"]), {"RESULT[1][k]": 2})
        self.assertEqual(pick_outputs(5, ["RESULT"]), {"RESULT": 5})
        self.assertEqual(pick_outputs((1, 2), ["O__1", "O__0"]), {"O__1": 2, "O__0": 1})
        with self.assertRaisesRegex(StatusError, "refers to an output index which doesn't exist. This model has 2"):
            pick_outputs((1, 2), ["O__2"])


def config_of(max_batch_size=0, inputs=(), outputs=()):
    return {"name": "m", "max_batch_size": max_batch_size, "input": list(inputs), "output": list(outputs)}


def tensor(name, dims, data_type="TYPE_FP32", **more):
    return {"name": name, "data_type": data_type, "dims": dims, **more}


ROWS = Signature([TensorSpec("x", "TYPE_FP32", [-1, 4])], [TensorSpec("y", "TYPE_INT64", [-1])])
FIXED = Signature([TensorSpec("x", "TYPE_FP32", [2, 4])], [TensorSpec("y", "TYPE_INT64", None)])


class SignatureTest(unittest.TestCase):
    def test_a_model_that_can_batch_gets_a_batch_and_a_scheduler(self):
        done = complete_from_signature(config_of(), ROWS, 4)
        self.assertEqual((done["max_batch_size"], done["dynamic_batching"]), (4, {}))
        self.assertEqual(done["input"], [tensor("x", [4])])
        # A row without dimensions is reshaped.
        self.assertEqual(done["output"], [tensor("y", [1], "TYPE_INT64", reshape={"shape": []})])

    def test_dims_of_the_config_tell_whether_a_batch_is_meant(self):
        done = complete_from_signature(config_of(inputs=[tensor("x", [-1, 4])]), ROWS, 4)
        self.assertEqual((done["max_batch_size"], done["output"]), (0, [tensor("y", [-1], "TYPE_INT64")]))
        done = complete_from_signature(config_of(inputs=[tensor("x", [4], "TYPE_INVALID")]), ROWS, 1)
        self.assertEqual((done["max_batch_size"], done["input"]), (1, [tensor("x", [4])]))
        self.assertNotIn("dynamic_batching", done)
        both = config_of(inputs=[tensor("x", [4])], outputs=[tensor("y", [-1], "TYPE_INT64")])
        with self.assertRaisesRegex(StatusError, "contradicting each other"):
            complete_from_signature(both, ROWS, 4)

    def test_a_model_that_cannot_batch_refuses_one(self):
        self.assertEqual(complete_from_signature(config_of(), FIXED, 4)["input"], [tensor("x", [2, 4])])
        with self.assertRaisesRegex(StatusError, "configuration specified max-batch 3 but model signature does not"):
            complete_from_signature(config_of(3), FIXED, 4)

    def test_controls_of_sequences_are_not_inputs(self):
        config = {**config_of(), "sequence_batching": {"control_input": [{"name": "x"}]}}
        self.assertEqual(complete_from_signature(config, ROWS, 4)["input"], [])

    def test_checks_speak_as_triton_does(self):
        text = "^unexpected inference input 'z', allowed inputs are: x$"
        with self.assertRaisesRegex(StatusError, text):
            check_names(config_of(inputs=[tensor("z", [4])]), ROWS)
        text = "configuration expects datatype TYPE_FP16 for input 'x', model provides TYPE_FP32$"
        with self.assertRaisesRegex(StatusError, text):
            check_tensors(config_of(2, [tensor("x", [4], "TYPE_FP16")]), ROWS)
        text = "the model expects 2 dimensions \\(shape \\[2,4\\]\\) but the model configuration specifies 1 dimensions"
        with self.assertRaisesRegex(StatusError, text):
            check_tensors(config_of(0, [tensor("x", [4])]), FIXED)
        check_tensors(config_of(2, [tensor("x", [-1])], [tensor("y", [1], "TYPE_INT64", reshape={"shape": []})]), ROWS)


class ParametersTest(unittest.TestCase):
    def test_flags_and_counts(self):
        texts = {"on": "YES", "off": "False", "four": "4", "bad": "-1"}
        parameters = Parameters({name: {"string_value": value} for name, value in texts.items()})
        self.assertEqual([parameters.flag(name) for name in ("on", "off", "none")], [True, False, None])
        self.assertEqual((parameters.count("four"), parameters.count("none")), (4, None))
        self.assertEqual(parameters.text("none", "default"), "default")
        with self.assertRaisesRegex(StatusError, "^expected the parameter 'bad' to be a non-negative number, got -1$"):
            parameters.count("bad")
        with self.assertRaises(StatusError):
            parameters.flag("bad")


if __name__ == "__main__":
    unittest.main()
