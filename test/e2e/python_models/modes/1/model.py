"""Answers in the way that MODE names; what a real Triton answers is in python-backend.test.ts."""
import json
import os
import sys
import threading
import time

import beside
import numpy as np
import triton_python_backend_utils as pb_utils

from . import beside as beside_too

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def respond(number, **more):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([number], np.int32))], **more)


def fail_inside():
    raise KeyError("q")


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        print("printed by the model")
        print("printed as an error", file=sys.stderr)
        pb_utils.Logger.log_warn("a warning of the model")

    def execute(self, requests):
        responses = []
        for request in requests:
            mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
            responses.append(getattr(self, mode)(request))
        return responses[0] if isinstance(responses[0], (str, tuple)) else responses

    def finalize(self):
        pb_utils.Logger.log_info("the model is finalized")

    def raises(self, _):
        fail_inside()

    def raises_nothing_to_say(self, _):
        raise ValueError()

    def returns_text(self, _):
        return "text"

    def returns_tuple(self, _):
        return ()

    def answers_twice(self, request):
        request.get_response_sender().send(respond(1), FINAL)
        return respond(2)

    def answers_by_sender(self, request):
        sender = request.get_response_sender()
        sender.send(respond(3))
        sender.send(flags=FINAL)

    def answers_from_a_thread(self, request):
        def answer(sender):
            time.sleep(0.05)
            sender.send(respond(4), FINAL)

        threading.Thread(target=answer, args=(request.get_response_sender(),)).start()

    def another_datatype(self, _):
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("OUT", np.array([1.5, 2.5])), pb_utils.Tensor("UNKNOWN", np.zeros(3))]
        )

    def elements(self, _):
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("TEXT", np.array(["é", 3, None, b"\0z"], np.object_)),
                pb_utils.Tensor("OUT", np.zeros((2, 0), np.int32)),
            ]
        )

    def parameters(self, _):
        return respond(5, parameters={"a": 1, "b": True, "c": "t"})

    def arguments(self, _):
        config = json.loads(self.args["model_config"])
        seen = {name: value for name, value in self.args.items() if name != "model_config"}
        seen["greeting"] = config["parameters"]["greeting"]["string_value"]
        seen["is_same_module"] = beside.NAME == beside_too.NAME
        seen["is_directory"] = pb_utils.get_model_dir() == os.path.dirname(__file__)
        text = np.array([json.dumps(seen, sort_keys=True)], np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("TEXT", text)])

    def crashes(self, _):
        os._exit(7)
