"""Has a coroutine for its readiness, and calls asyncio in it."""
import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.is_awake = args["model_instance_name"].endswith("_0")

    async def is_ready(self):
        await asyncio.sleep(0.01)
        return self.is_awake

    def execute(self, requests):
        output = pb_utils.Tensor("OUT", np.zeros(1, np.int32))
        return [pb_utils.InferenceResponse([output]) for _ in requests]
