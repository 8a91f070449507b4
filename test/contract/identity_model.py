"""The identity backend of the host cases, as a Python-based backend: output i is a copy of input i. It answers after
`execute_delay_ms`; decoupled, it answers every request COUNT times, one part at a time."""
import json
import time

import triton_python_backend_utils as pb_utils
from nereid_host.status import StatusError

COUNT = 300
PART_PAUSE_S = 0.001


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        given = config.as_dict()
        if len(given["input"]) != len(given["output"]):
            raise StatusError("INVALID_ARG", "model must have the same number of inputs and outputs")
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.names = {
            given["name"]: output["name"] for given, output in zip(config["input"], config["output"])
        }
        delay = config["parameters"].get("execute_delay_ms", {"string_value": "0"})
        self.delay_s = int(delay["string_value"]) / 1000
        self.is_decoupled = pb_utils.using_decoupled_model_transaction_policy(config)

    def execute(self, requests):
        if not self.is_decoupled:
            return [self.answer(request) for request in requests]
        for request in requests:
            sender = request.get_response_sender()
            for _ in range(COUNT):
                sender.send(self.copy(request))
                time.sleep(PART_PAUSE_S)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def answer(self, request):
        end = time.monotonic() + self.delay_s
        while time.monotonic() < end:
            if request.is_cancelled():
                error = pb_utils.TritonError("", pb_utils.TritonError.CANCELLED)
                return pb_utils.InferenceResponse(error=error)
            time.sleep(0.005)
        return self.copy(request)

    def copy(self, request):
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(self.names[tensor.name()], tensor.as_numpy()) for tensor in request.inputs()]
        )
