"""Calls to other models: answers, errors, many responses, threads, and requests that cannot be made."""
import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, outcome, raised

IN = np.array([1.5, 2.5], np.float32)


def to(model_name, array=IN, **options):
    names = {"counter": ("COUNT", "INDEX"), "requests": ("STEP", "SEEN")}
    input_name, output_name = names.get(model_name, ("IN", "OUT"))
    fields = {"requested_output_names": [output_name], "inputs": [pb_utils.Tensor(input_name, array)], **options}
    return pb_utils.InferenceRequest(model_name=model_name, **fields)


def count(number):
    return to("counter", np.array([number], np.int32))


class TritonPythonModel(StepModel):
    def one(self, _):
        return outcome(to("identity").exec())

    def version(self, _):
        return [outcome(to("identity", model_version=version).exec()) for version in (1, -1, 9)]

    def no_elements(self, _):
        return outcome(to("identity", np.zeros(0, np.float32)).exec())

    def unknown_model(self, _):
        return outcome(to("absent").exec())

    def wrong_inputs(self, _):
        return [
            outcome(to("identity", np.zeros(2, np.int32)).exec()),
            outcome(to("identity", np.zeros((2, 2), np.float32)).exec()),
            outcome(to("identity", inputs=[]).exec()),
            outcome(to("identity", inputs=[pb_utils.Tensor("OTHER", IN)]).exec()),
            outcome(to("identity", inputs=[pb_utils.Tensor("IN", IN), pb_utils.Tensor("OTHER", IN)]).exec()),
            outcome(to("identity", request_id="r7", inputs=[]).exec()),
        ]

    def wrong_outputs(self, _):
        return [
            outcome(to("identity", requested_output_names=["OTHER"]).exec()),
            outcome(to("identity", requested_output_names=["OUT", "OTHER"]).exec()),
        ]

    def no_output_names(self, _):
        return outcome(to("identity", requested_output_names=[]).exec())

    def error_of_model(self, _):
        return outcome(to("identity", np.array([-1], np.float32)).exec())

    def exception_of_model(self, _):
        return outcome(to("identity", np.array([-2], np.float32)).exec())

    def same_request_twice(self, _):
        request = to("identity")
        return [outcome(request.exec()), outcome(request.exec())]

    def keeps_values(self, _):
        response = to("identity").exec()
        array = response.output_tensors()[0].as_numpy()
        outcome(to("identity", np.zeros(2, np.float32)).exec())
        return array.tolist()

    def threads(self, _):
        def one(number):
            return to("identity", np.full(1, number, np.float32)).exec().output_tensors()[0].as_numpy().tolist()

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, range(12)))

    def event_loop(self, _):
        async def both():
            calls = [to("identity", np.full(1, number, np.float32)).async_exec() for number in (1, 2)]
            return [outcome(response) for response in await asyncio.gather(*calls)]

        return asyncio.run(both())

    def many(self, _):
        return [[outcome(response) for response in count(number).exec(decoupled=True)] for number in (0, 1, 3)]

    def many_with_error(self, _):
        return [outcome(response) for response in count(-2).exec(decoupled=True)]

    def many_again(self, _):
        responses = count(2).exec(decoupled=True)
        first = [outcome(response) for response in responses]
        return [type(responses).__name__, first == [outcome(response) for response in responses]]

    def many_of_one(self, _):
        return [outcome(response) for response in to("identity").exec(decoupled=True)]

    def many_of_unknown(self, _):
        return [outcome(response) for response in to("absent").exec(decoupled=True)]

    def cancelled(self, _):
        responses = count(3).exec(decoupled=True)
        next(iter(responses))
        responses.cancel()
        return "cancelled"

    def decoupled_as_one(self, _):
        return outcome(count(1).exec())

    def attributes(self, request):
        response = to(
            "requests",
            np.array([b"attributes"], np.object_),
            request_id="inner",
            correlation_id=7,
            flags=pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
            timeout=123456,
            parameters={"i": 1, "b": True, "s": "é"},
            preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0),
            trace=request.trace(),
        ).exec()
        return json.loads(response.output_tensors()[0].as_numpy()[0])

    def text_correlation_id(self, _):
        return outcome(to("requests", np.array([b"attributes"], np.object_), correlation_id="abc").exec())

    def says(self, _):
        request = to("identity", request_id="i", correlation_id=3, flags=1, timeout=5)
        names = sorted(request.requested_output_names())
        inputs = [tensor.name() for tensor in request.inputs()]
        numbers = [request.correlation_id(), request.flags(), request.timeout()]
        return [request.request_id(), *numbers, names, inputs, request.parameters()]

    def own_is_cancelled(self, _):
        return to("identity").is_cancelled()

    def not_received(self, _):
        request = to("identity")
        return [raised(request.get_response_sender), raised(request.set_release_flags, 1)]

    def by_position(self, _):
        inputs = [pb_utils.Tensor("IN", IN)]
        return outcome(pb_utils.InferenceRequest("id", 3, inputs, ["OUT"], "identity").exec())

    def refused(self, _):
        make = pb_utils.InferenceRequest
        return [
            raised(lambda: bool(to("identity", inputs=[None]))),
            raised(lambda: bool(to("identity", requested_output_names=[""]))),
            raised(lambda: bool(to("identity", requested_output_names=["OUT", ""]))),
            raised(lambda: bool(to("identity", correlation_id=1.5))),
            raised(lambda: bool(to("identity", inputs=[1]))),
            raised(lambda: bool(to(None))),
            raised(make),
            raised(make, model_name="identity"),
            raised(lambda: bool(to("identity", flags=-1))),
            raised(lambda: bool(to("identity", timeout=-1))),
        ]

    def negative_correlation_id(self, _):
        return raised(lambda: bool(to("identity", correlation_id=-1)))

    def refused_parameters(self, _):
        wrong = [{"a": 1.5}, {"a": None}, {"a": [1]}, {1: "a"}]
        return [raised(lambda value=value: bool(to("identity", parameters=value))) for value in wrong]

    def memory(self, _):
        make = pb_utils.PreferredMemory
        return [
            type(make(pb_utils.TRITONSERVER_MEMORY_GPU)).__name__,
            type(make(preferred_memory_type=pb_utils.TRITONSERVER_MEMORY_CPU, preferred_device_id=1)).__name__,
            raised(make),
            raised(make, "cpu"),
        ]

    def trace_context(self, request):
        return [request.trace().get_context()]

    def own_trace(self, _):
        return outcome(to("identity", trace=pb_utils.InferenceTrace()).exec())
