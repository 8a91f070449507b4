"""An asynchronous model: for every request two models are called side by side, a stream of them read to its end."""
import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        return list(await asyncio.gather(*(self.answer(request) for request in requests)))

    async def answer(self, request):
        array = request.inputs()[0].as_numpy()
        ask = pb_utils.InferenceRequest(
            model_name="identity_fp32", requested_output_names=["OUTPUT0"], inputs=request.inputs()
        )
        count = pb_utils.InferenceRequest(
            model_name="async_stream",
            requested_output_names=["INDEX"],
            inputs=[pb_utils.Tensor("COUNT", np.array([4], np.int32))],
        )
        same, responses = await asyncio.gather(ask.async_exec(), count.async_exec(decoupled=True))
        total = sum(int(tensor.as_numpy()[0]) for response in responses for tensor in response.output_tensors())
        output = same.output_tensors()[0].as_numpy() + array * 0 + total
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", output)])
