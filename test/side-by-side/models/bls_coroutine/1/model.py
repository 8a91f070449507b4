"""Calls of a coroutine."""
import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils
from steps import outcome, seen, step_of


def to(model_name, input_name, array, output_name):
    inputs = [pb_utils.Tensor(input_name, array)]
    return pb_utils.InferenceRequest(model_name=model_name, inputs=inputs, requested_output_names=[output_name])


def identity(number):
    return to("identity", "IN", np.array([number], np.float32), "OUT")


class TritonPythonModel:
    async def execute(self, requests):
        return [seen(await getattr(self, step_of(request))()) for request in requests]

    async def one(self):
        return outcome(await identity(1).async_exec())

    async def gathered(self):
        responses = await asyncio.gather(*[identity(number).async_exec() for number in range(5)])
        return [response.output_tensors()[0].as_numpy().tolist() for response in responses]

    async def unknown(self):
        return outcome(await to("absent", "IN", np.zeros(1, np.float32), "OUT").async_exec())

    async def many(self):
        responses = await to("counter", "COUNT", np.array([2], np.int32), "INDEX").async_exec(decoupled=True)
        return [outcome(response) for response in responses]

    async def decoupled_as_one(self):
        return outcome(await to("counter", "COUNT", np.array([2], np.int32), "INDEX").async_exec())
