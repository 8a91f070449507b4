"""Driver of grpc-client.test.ts: tritonclient.grpc.aio.

    grpc_aio.py URL     URL serves examples/models and the identity model slow (3 s)
"""
import asyncio
import sys
import time

import numpy as np
import tritonclient.grpc as blocking
import tritonclient.grpc.aio as triton
from checks import counts, run_checks, tensor
from tritonclient.utils import InferenceServerException

URL = sys.argv[1]


def scaled(factor, **more):
    return dict(model_name="scaler", model_version="2", inputs=[tensor("X", np.full((1, 2), factor, np.float32))],
                request_id=str(factor), **more)


async def check_management():
    async with triton.InferenceServerClient(URL) as client:
        assert await client.is_server_live() and await client.is_server_ready()
        assert await client.is_model_ready("digits") and not await client.is_model_ready("no_such")
        assert (await client.get_model_config("digits")).config.max_batch_size == 32
        assert list((await client.get_model_metadata("scaler")).versions) == ["1", "2", "3"]
        assert len((await client.get_inference_statistics("scaler")).model_stats) == 3
        assert (await client.get_server_metadata(as_json=True))["name"]


async def check_many_at_once():
    async with triton.InferenceServerClient(URL) as client:
        results = await asyncio.gather(*(client.infer(**scaled(i)) for i in range(100)))
        for i, result in enumerate(results):
            assert result.get_response().id == str(i)
            np.testing.assert_array_equal(result.as_numpy("Y"), np.full((1, 2), i * 10, np.float32))


async def check_stream_with_an_async_generator():
    async def requests():
        for i in range(50):
            yield scaled(i)
            if i % 10 == 0:
                await asyncio.sleep(0.01)

    async with triton.InferenceServerClient(URL) as client:
        ids = []
        async for result, error in client.stream_infer(requests()):
            assert error is None, error
            ids.append(int(result.get_response().id))
            np.testing.assert_array_equal(result.as_numpy("Y"), np.full((1, 2), ids[-1] * 10, np.float32))
        assert ids == list(range(50)), ids


async def check_error_inside_a_stream():
    async def requests():
        yield scaled(1)
        yield {**scaled(2), "model_name": "no_such"}
        yield scaled(3)

    async with triton.InferenceServerClient(URL) as client:
        answers = [(result, error) async for result, error in client.stream_infer(requests())]
        assert [error is None for _, error in answers] == [True, False, True], answers
        assert "Request for unknown model: 'no_such' is not found" in str(answers[1][1]), answers
        assert answers[2][0].get_response().id == "3"


async def check_cancel_of_a_task():
    before = counts(blocking.InferenceServerClient(URL), "slow")
    async with triton.InferenceServerClient(URL) as client:
        one = [tensor("INPUT0", np.ones((1, 1), np.float32))]
        task = asyncio.create_task(client.infer("slow", one))
        await asyncio.sleep(0.3)
        task.cancel()
        try:
            await task
            raise AssertionError("not cancelled")
        except asyncio.CancelledError:
            pass
    await failed_once_more(before)


async def check_cancel_of_a_stream():
    before = counts(blocking.InferenceServerClient(URL), "slow")

    async def requests():
        yield {"model_name": "slow", "inputs": [tensor("INPUT0", np.ones((1, 1), np.float32))]}
        await asyncio.sleep(30)

    async with triton.InferenceServerClient(URL) as client:
        answers = client.stream_infer(requests())
        reader = asyncio.create_task(answers.__anext__())
        await asyncio.sleep(0.3)
        assert answers.cancel()
        try:
            await reader
            raise AssertionError("not cancelled")
        except (asyncio.CancelledError, InferenceServerException):
            pass
    await failed_once_more(before)


async def failed_once_more(before):
    client = blocking.InferenceServerClient(URL)
    end = time.monotonic() + 2  # less than the request would have taken
    while counts(client, "slow") != (before[0], before[1] + 1):
        assert time.monotonic() < end, (before, counts(client, "slow"))
        await asyncio.sleep(0.05)


async def check_deadline():
    async with triton.InferenceServerClient(URL) as client:
        try:
            await client.infer("slow", [tensor("INPUT0", np.ones((1, 1), np.float32))], client_timeout=0.2)
            raise AssertionError("no deadline")
        except InferenceServerException as error:
            assert error.status() == "StatusCode.DEADLINE_EXCEEDED", error


if __name__ == "__main__":
    run_checks(sys.modules[__name__])
