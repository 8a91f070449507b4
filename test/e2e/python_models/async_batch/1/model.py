"""`async def execute` that is waited for; a negative number fails."""
import asyncio

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        return await asyncio.gather(*(self.double(request) for request in requests))

    async def double(self, request):
        await asyncio.sleep(0.001)
        data = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        if (data < 0).any():
            raise ValueError("negative")
        data *= 2
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)])
