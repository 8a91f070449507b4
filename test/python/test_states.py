"""Implicit states: what requests are fed, and what is kept of the answers."""
import os
import struct
import tempfile
import unittest

import numpy as np
from nereid_host.adapters.array_batch import Array
from nereid_host.adapters.framework_model import FrameworkModel
from nereid_host.batch_runner import BatchRunner
from nereid_host.execute_frame import STATE_END, STATE_START, SentRequest
from nereid_host.frames import Frame
from nereid_host.protocol import FRAME_EXECUTE
from nereid_host.response import InferenceResponse, TritonError
from nereid_host.states import SequenceStates, with_sequence_tensors
from nereid_host.status import StatusError
from nereid_host.tensor import Tensor


def config(*states, max_batch_size=4):
    return {
        "name": "m",
        "max_batch_size": max_batch_size,
        "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [1]}],
        "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [1]}],
        "sequence_batching": {
            "control_input": [
                {"name": "READY", "control": [{"kind": "CONTROL_SEQUENCE_READY", "fp32_false_true": [0, 1]}]}
            ],
            "state": list(states),
        },
    }


def state(name="S", data_type="TYPE_FP32", dims=(1,), **fields):
    return {"input_name": name, "output_name": name + "_OUT", "data_type": data_type, "dims": list(dims), **fields}


def initial(**fields):
    return {"initial_state": [{"data_type": "TYPE_FP32", "name": "first", "dims": [2], **fields}]}


class StatesTest(unittest.TestCase):
    def feed(self, states, slot, flags=0):
        """The request and the values of its states."""
        request = SentRequest([], (), b"", slot, flags)
        error = states.feed(request)
        if error is not None:
            return request, error
        return request, [tensor.as_numpy().tolist() for tensor in request.inputs]

    def answer(self, values, name="S_OUT"):
        return InferenceResponse([Tensor("Y", np.zeros(1, np.float32)), Tensor(name, np.array(values, np.float32))])

    def test_each_slot_goes_on_from_its_own_state(self):
        states = SequenceStates(config(state()), "", is_kept=True)
        first, fed = self.feed(states, 1, STATE_START)
        self.assertEqual(fed, [[[0.0]]])
        second, _ = self.feed(states, 9, STATE_START)
        values = np.array([[9]], np.float32)
        states.keep([first, second], [self.answer([[5]]), InferenceResponse([Tensor("S_OUT", values)])])
        values[:] = 0
        self.assertEqual([self.feed(states, slot)[1] for slot in (9, 1)], [[[[9.0]]], [[[5.0]]]])
        self.assertEqual(self.feed(states, 0)[1], [[[0.0]]])
        self.assertEqual(self.feed(states, 9, STATE_START)[1], [[[0.0]]])

    def test_a_failed_request_leaves_the_state_and_the_end_frees_it(self):
        states = SequenceStates(config(state()), "", is_kept=True)
        request, _ = self.feed(states, 1, STATE_START)
        states.keep([request], [self.answer([[5]])])
        for failure in (StatusError("INTERNAL", "x"), InferenceResponse(error=TritonError("x")), None):
            request, fed = self.feed(states, 1)
            self.assertEqual(fed, [[[5.0]]])
            states.keep([request], [failure])
        request, _ = self.feed(states, 1, STATE_END)
        states.keep([request], [StatusError("INTERNAL", "x")])
        _, error = self.feed(states, 1)
        self.assertEqual(error.code, "UNAVAILABLE")
        self.assertIn("start the sequence again", error.message)

    def test_a_state_that_comes_with_the_request_is_taken(self):
        states = SequenceStates(config(state()), "", is_kept=True)
        request = SentRequest([Tensor("S", np.array([[3]], np.float32))], (), b"")
        self.assertIsNone(states.feed(request))
        self.assertEqual([tensor.as_numpy().tolist() for tensor in request.inputs], [[[3.0]]])

    def test_a_state_may_grow(self):
        states = SequenceStates(config(state(dims=[-1]), max_batch_size=0), "", is_kept=True)
        request, fed = self.feed(states, 1, STATE_START)
        self.assertEqual(fed, [[0.0]])
        states.keep([request], [self.answer([1, 2, 3])])
        self.assertEqual(self.feed(states, 1)[1], [[1.0, 2.0, 3.0]])

    def test_texts(self):
        states = SequenceStates(config(state(data_type="TYPE_STRING")), "", is_kept=True)
        request, fed = self.feed(states, 1, STATE_START)
        self.assertEqual(fed, [[[b""]]])
        states.keep([request], [InferenceResponse([Tensor("S_OUT", np.array([["abc"]], np.object_))])])
        self.assertEqual(self.feed(states, 1)[1], [[[b"abc"]]])

    def test_models_in_python_get_the_initial_state_every_time(self):
        states = SequenceStates(config(state()), "", is_kept=False)
        for flags in (STATE_START, 0, 0):
            request, fed = self.feed(states, 1, flags)
            self.assertEqual(fed, [[[0.0]]])
            request.inputs[0].as_numpy()[:] = 7
            states.keep([request], [self.answer([[5]])])

    def test_initial_states_of_files(self):
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(os.path.join(directory, "initial_state"))
            with open(os.path.join(directory, "initial_state", "f"), "wb") as file:
                file.write(struct.pack("<3f", 1, 2, 3))
            made = SequenceStates(config(state(dims=[-1], **initial(data_file="f"))), directory, is_kept=True)
            self.assertEqual(self.feed(made, 1, STATE_START)[1], [[[1.0, 2.0]]])
            with self.assertRaises(StatusError) as raised:
                SequenceStates(config(state(dims=[-1], **initial(data_file="f", dims=[4]))), directory, True)
            self.assertEqual(
                raised.exception.message,
                "initial_state setting expects 16 bytes, but the data provided from fonly has 12 bytes.",
            )
            with self.assertRaisesRegex(StatusError, "failed to open text file for read .*none: No such file"):
                SequenceStates(config(state(**initial(data_file="none"))), directory, True)

    def test_a_framework_sees_controls_and_states_as_inputs_and_outputs(self):
        original = config(state())
        full = with_sequence_tensors(original)
        self.assertEqual([tensor["name"] for tensor in full["input"]], ["X", "READY", "S"])
        self.assertEqual([tensor["data_type"] for tensor in full["input"]], ["TYPE_FP32"] * 3)
        self.assertEqual([tensor["name"] for tensor in full["output"]], ["Y", "S_OUT"])
        self.assertEqual(len(original["input"]), 1)
        plain = {"input": [], "output": []}
        self.assertIs(with_sequence_tensors(plain), plain)


class Adder(FrameworkModel):
    """Y and the new state are X and the old one; its framework is numpy."""

    def import_framework(self):
        self.run_rows = []

    def start(self):
        self.names = [tensor["name"] for tensor in self.config["input"]]

    def run(self, inputs):
        values = inputs["X"].values
        self.run_rows.append(len(values))
        if values.max() > 100:
            raise RuntimeError("too large")
        total = Array(11, values + inputs["S"].values)
        return {"Y": total, "S_OUT": total}


class RunnerTest(unittest.TestCase):
    def setUp(self):
        served = config(state())
        self.model = Adder(
            {"placement": {"name": "m_0"}, "modelName": "m", "config": served, "versionDirectory": "m/1"}
        )
        self.model.initialize(served)
        self.sent = []
        self.runner = BatchRunner(self.model, served, None, self.sent.append, lambda task: task())

    def run_batch(self, *steps):
        """Each step: the value, the slot, the flags. Gives the RESPONSE frame and the rows of the last run."""
        header = struct.pack("<II", 1, len(steps))
        for position, (_, slot, flags) in enumerate(steps):
            header += struct.pack("<HHBQQQQ", 1, 0, 2, 1, 1, position * 4, 4) + struct.pack("<HI", 0, 0)
            header += struct.pack("<IB", slot, flags)
        payload = np.array([value for value, _, _ in steps], np.float32).view(np.uint8)
        self.runner.run(self.runner.accept(Frame(FRAME_EXECUTE, header, payload)))
        data = b"".join(bytes(piece) for piece in self.sent.pop())
        return data, self.model.run_rows.pop()

    def test_rows_of_slots_and_of_nobody_run_as_one_batch(self):
        self.assertEqual(self.model.names, ["X", "READY", "S"])
        self.run_batch((1, 1, STATE_START), (10, 2, STATE_START))
        data, rows = self.run_batch((2, 2, 0), (7, 0, 0), (2, 1, 0))
        self.assertEqual(rows, 3)
        self.assertEqual(np.frombuffer(data[-64:], np.float32)[:3].tolist(), [12, 7, 3])

    def test_a_failure_leaves_the_state_and_a_lost_one_is_told(self):
        self.run_batch((1, 1, STATE_START))
        self.assertIn(b"too large", self.run_batch((101, 1, 0))[0])
        data, _ = self.run_batch((1, 1, 0), (1, 5, 0))
        self.assertIn(b"start the sequence again", data)
        self.assertEqual(np.frombuffer(data[-64:], np.float32)[0], 2)


if __name__ == "__main__":
    unittest.main()
