"""Calls other models in many ways; STEP names the function below that is run, SEEN is what it saw, as JSON text."""
import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import triton_python_backend_utils as pb_utils


def call(model_name, array, **options):
    """A request to a model with the tensors of the conformance models."""
    names = {"nobatch": ("X", "Y"), "async_stream": ("COUNT", "INDEX"), "bls_sleep": ("MS", "OUT")}
    input_name, output_name = names.get(model_name, ("INPUT0", "OUTPUT0"))
    options = {"requested_output_names": [output_name], **options}
    return pb_utils.InferenceRequest(model_name=model_name, inputs=[pb_utils.Tensor(input_name, array)], **options)


def values(response):
    if response.has_error():
        return {"code": int(response.error().code()), "error": response.error().message()}
    arrays = [tensor.as_numpy() for tensor in response.output_tensors()]
    return [str(array[0], "utf-8") if array.dtype == np.object_ else array.tolist() for array in arrays]


def chain_of_onnx_and_python(_request):
    first = call("nobatch", np.arange(6, dtype=np.float32).reshape(2, 3)).exec()
    tensor = pb_utils.get_output_tensor_by_name(first, "Y")
    second = call("identity_fp32", tensor.as_numpy().reshape(2, 3)).exec()
    return [values(second), json.loads(first.parameters())]


def large_tensors(_request):
    array = np.arange(3 * 1024 * 1024, dtype=np.float32).reshape(1, -1)
    answer = call("identity_fp32", array).exec()
    return bool(np.array_equal(answer.output_tensors()[0].as_numpy(), array))


def many_threads(_request):
    def one(number):
        return values(call("identity_fp32", np.full((1, 2), number, np.float32)).exec())[0][0][1]

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(40)))


def errors(_request):
    wrong_shape = call("nobatch", np.zeros((1, 2), np.float32), request_id="r7")
    return [
        values(call("absent", np.zeros((1, 1), np.float32)).exec()),
        values(call("nobatch", np.zeros((2, 3), np.float32), model_version=9).exec()),
        values(wrong_shape.exec()),
        values(call("async_stream", np.array([2], np.int32)).exec()),
        values(call("bls_sleep", np.array([-5], np.int32)).exec()),
    ]


def stream(_request):
    responses = call("async_stream", np.array([3], np.int32)).exec(decoupled=True)
    first = [values(response) for response in responses]
    return [first, [values(response) for response in responses] == first]


def stream_of_one(_request):
    responses = call("identity_fp32", np.ones((1, 2), np.float32)).exec(decoupled=True)
    return [values(response) for response in responses]


def stream_cancelled(_request):
    responses = call("async_stream", np.array([100000], np.int32)).exec(decoupled=True)
    next(responses)
    responses.cancel()
    last = [values(response) for response in responses][-1]
    return last["code"]


def stream_read_slowly(_request):
    # More than is held unread, and large enough to fill every buffer on the way.
    responses = call("bls_flood", np.array([400], np.int32), requested_output_names=["OUTPUT0"]).exec(decoupled=True)
    time.sleep(0.3)
    read = 0
    for response in responses:
        if response.output_tensors():
            read += int(response.output_tensors()[0].as_numpy()[0, 0] == read)
    return read


def request_fields(_request):
    return [seen_by_echo(correlation_id=2**64 - 1, flags=3), seen_by_echo(correlation_id="abc")]


def seen_by_echo(**options):
    inputs = [pb_utils.Tensor("NUMBER", np.array([3], np.int32))]
    answer = pb_utils.InferenceRequest(
        request_id="inner",
        model_name="py_echo",
        requested_output_names=["SEEN"],
        inputs=inputs,
        timeout=2**53 + 1,
        parameters={"a": 1, "b": True, "c": "t", "big": 2**62},
        preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU),
        **options,
    ).exec()
    seen = json.loads(pb_utils.get_output_tensor_by_name(answer, "SEEN").as_numpy()[0])
    # As texts, for the reader of this has no integers of 64 bits.
    seen["timeout"] = str(seen["timeout"])
    seen["correlation_id"] = str(seen["correlation_id"])
    seen["parameters"]["big"] = str(seen["parameters"]["big"])
    return seen


def itself(_request):
    inputs = [pb_utils.Tensor("STEP", np.array([b"itself"], np.object_))]
    answer = pb_utils.InferenceRequest(model_name="bls_steps", requested_output_names=["SEEN"], inputs=inputs).exec()
    return values(answer)


def back(_request):
    inputs = [pb_utils.Tensor("MODE", np.array([b"again"], np.object_))]
    answer = pb_utils.InferenceRequest(model_name="bls_chain", requested_output_names=["OUT"], inputs=inputs).exec()
    return values(answer)


def inner_dies(_request):
    return values(call("bls_sleep", np.array([100001], np.int32)).exec())


def own_event_loop(_request):
    async def both():
        numbers = (call("identity_fp32", np.full((1, 1), number, np.float32)).async_exec() for number in (1, 2))
        return [values(answer)[0][0][0] for answer in await asyncio.gather(*numbers)]

    return asyncio.run(both())


def control(_request):
    seen = [pb_utils.is_model_ready("bls_extra"), pb_utils.is_model_ready("nobatch", "1")]
    pb_utils.load_model("bls_extra", files=None)
    seen.append(pb_utils.is_model_ready("bls_extra"))
    pb_utils.unload_model("bls_extra")
    seen.append(pb_utils.is_model_ready("bls_extra"))
    for wrong in (lambda: pb_utils.load_model("absent"), lambda: pb_utils.is_model_ready("nobatch", "x")):
        try:
            wrong()
        except pb_utils.TritonModelException as error:
            seen.append(str(error))
    return seen


def sleeps(_request):
    # Its client goes away long before.
    return values(call("bls_sleep", np.array([60000], np.int32)).exec())


def sleeps_in_a_thread(request):
    # A thread does not know whom it works for; the trace says it.
    with ThreadPoolExecutor(1) as pool:
        sleeping = call("bls_sleep", np.array([60000], np.int32), trace=request.trace())
        return values(pool.submit(sleeping.exec).result())


class TritonPythonModel:
    def initialize(self, args):
        try:
            call("nobatch", np.zeros((2, 3), np.float32)).exec()
        except pb_utils.TritonModelException as error:
            pb_utils.Logger.log_info("in initialize: %s" % error)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        step = pb_utils.get_input_tensor_by_name(request, "STEP").as_numpy()[0].decode()
        text = json.dumps(globals()[step](request))
        return pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", np.array([text], np.object_))])
