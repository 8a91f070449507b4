"""Decoupled `async def execute`: executions run side by side; a negative COUNT fails, 0 forgets the request."""
import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            count = int(pb_utils.get_input_tensor_by_name(request, "COUNT").as_numpy()[0])
            if count < 0:
                raise ValueError("negative")
            if count == 0:
                continue
            sender = request.get_response_sender()
            for index in range(count):
                await asyncio.sleep(0.02)
                tensor = pb_utils.Tensor("INDEX", np.array([index], np.int32))
                sender.send(pb_utils.InferenceResponse([tensor]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
