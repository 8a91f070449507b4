"""ModelConfig, with Triton's texts, and the text of exceptions."""
import json
import unittest

import numpy as np
import triton_python_backend_utils as pb_utils
from nereid_host.exception_text import text_of
from nereid_host.model_config import complete_defaults
from nereid_host.status import StatusError


def make_config(**more):
    given = {"name": "m", "data_type": "TYPE_FP32", "dims": [16]}
    config = {"name": "M", "max_batch_size": 4, "input": [dict(given, name="X")], "output": []}
    return pb_utils.ModelConfig(json.dumps({**config, **more}))


class ModelConfigTest(unittest.TestCase):
    def refuses(self, text, call):
        with self.assertRaises(ValueError) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_what_a_model_adds_is_complete(self):
        config = make_config(max_batch_size=0)
        config.set_max_batch_size(3)
        config.set_dynamic_batching()
        config.add_input({"name": "I", "data_type": "TYPE_INT16", "dims": (np.int64(2),), "optional": True})
        config.add_output({"name": "O", "data_type": "TYPE_INT16", "dims": [2]})
        config.set_model_transaction_policy({"decoupled": True})
        completed = complete_defaults(config.as_dict())
        self.assertEqual(completed["max_batch_size"], 3)
        self.assertEqual(completed["dynamic_batching"]["preferred_batch_size"], [])
        self.assertEqual(completed["model_transaction_policy"], {"decoupled": True})
        added = completed["input"][1]
        self.assertEqual((added["dims"], added["optional"], added["format"]), ([2], True, "FORMAT_NONE"))
        self.assertEqual(completed["output"][0]["label_filename"], "")
        json.dumps(completed)

    def test_conflicts_with_the_config(self):
        config = make_config()
        self.refuses(
            "configuration specified max_batch_size 4, but in auto-complete-config function for model 'M' "
            "specified max_batch_size 2",
            lambda: config.set_max_batch_size(2),
        )
        self.refuses(
            "unable to load model 'M', configuration expects datatype TYPE_FP32 for input 'X', "
            "model provides TYPE_INT8",
            lambda: config.add_input({"name": "X", "data_type": "TYPE_INT8", "dims": [16]}),
        )
        self.refuses(
            "model 'M', tensor 'X': the model expects dims [4] but the model configuration specifies dims [16]",
            lambda: config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": [4]}),
        )
        sequence = make_config(sequence_batching={})
        self.refuses(
            "Configuration specified scheduling_choice as 'sequence_batching', but auto-complete-config function "
            "for model 'M' tries to set scheduling_choice as 'dynamic_batching'",
            sequence.set_dynamic_batching,
        )
        decoupled = make_config(model_transaction_policy={"decoupled": False})
        self.refuses(
            "trying to change decoupled property in auto-complete-config for model 'M', which is already set to "
            "'False'.",
            lambda: decoupled.set_model_transaction_policy({"decoupled": True}),
        )

    def test_properties(self):
        config = make_config()
        self.refuses(
            "input 'X' in auto-complete-config function for model 'M' contains property other than 'name', "
            "'data_type', 'dims' and 'optional'.",
            lambda: config.add_input({"name": "X", "extra": 1}),
        )
        self.refuses(
            "output 'Y' in auto-complete-config function for model 'M' contains property other than 'name', "
            "'data_type' and 'dims'.",
            lambda: config.add_output({"name": "Y", "optional": True}),
        )
        self.refuses(
            "input 'Z' in auto-complete-config function for model 'M' is missing 'dims' property.",
            lambda: config.add_input({"name": "Z", "data_type": "TYPE_INT8"}),
        )
        self.refuses(
            "output in auto-complete-config function for model 'M' is missing 'name' property.",
            lambda: config.add_output({"data_type": "TYPE_INT8"}),
        )

    def test_finding_a_tensor(self):
        config = make_config().as_dict()
        self.assertEqual(pb_utils.get_input_config_by_name(config, "X")["dims"], [16])
        self.assertIsNone(pb_utils.get_output_config_by_name(config, "X"))
        self.assertFalse(pb_utils.using_decoupled_model_transaction_policy(config))


class ExceptionTextTest(unittest.TestCase):
    def text(self, call):
        try:
            call()
        except Exception as error:
            return text_of(error)
        self.fail("nothing was raised")

    def test_the_innermost_place_comes_first(self):
        def inner():
            raise KeyError("q")

        def outer():
            inner()

        places = r"  \S+test_model_config.py\(\d+\): inner\n  \S+test_model_config.py\(\d+\): outer\n"
        self.assertRegex(self.text(outer), r"\AKeyError: 'q'\n\nAt:\n" + places)

    def test_places_in_the_host_are_not_told(self):
        text = self.text(lambda: pb_utils.Tensor("", np.zeros(1)))
        self.assertRegex(text, r"\ATritonModelException: Tensor name cannot be an empty string.\n\nAt:\n")
        self.assertNotIn("nereid_host", text)

    def test_no_message_and_no_place(self):
        self.assertEqual(text_of(ValueError()), "ValueError: <EMPTY MESSAGE>")
        self.assertEqual(text_of(StatusError("INTERNAL", "plain")), "plain")
