"""Calls of the server: frames, results, streams and their flow, requests to other models, and what is refused."""
import asyncio
import gc
import json
import threading
import unittest

import numpy as np
import triton_python_backend_utils as pb_utils
from nereid_host.calls import Calls
from nereid_host.frames import Frame
from nereid_host.parents import working_for
from nereid_host.protocol import FRAME_CALL_CANCEL, FRAME_CALL_FLOW, FRAME_RESULT, PREAMBLE
from nereid_host.response_iterator import UNREAD_MAX, UNREAD_RESUME
from nereid_host.runtime import FINALIZING, INITIALIZING, LOADING, RUNNING, runtime

ONE = {"name": "Y", "datatype": "FP32", "shape": [1, 2], "offset": 0, "byteLength": 8}


class Server:
    """Takes the frames of a host and gives results; `answer` says which, for each call."""

    def __init__(self, answer=lambda server, message: None):
        self.calls = Calls(self.take)
        self.messages = []
        self.payloads = []
        self.answer = answer

    def take(self, pieces):
        data = b"".join(bytes(memoryview(piece)) for piece in pieces)
        assert len(data) % 64 == 0
        header_bytes, frame_type, _, _, payload_bytes = PREAMBLE.unpack(data[: PREAMBLE.size])
        message = json.loads(data[PREAMBLE.size : PREAMBLE.size + header_bytes])
        start = -(-(PREAMBLE.size + header_bytes) // 64) * 64
        self.messages.append((frame_type, message))
        self.payloads.append(data[start : start + payload_bytes])
        self.answer(self, message)

    def result(self, call_id, is_final, array=None, **more):
        message = {"callId": call_id, "isFinal": is_final, **more}
        payload = None
        if array is not None:
            payload = np.array(array, np.float32).view(np.uint8)
            message["response"] = {"model": "m", "version": 1, "id": "", "parameters": {}, "outputs": [ONE]}
        self.calls.on_result(Frame(FRAME_RESULT, json.dumps(message).encode(), payload))

    def types(self):
        return [frame_type for frame_type, _ in self.messages]


def request(**options):
    fields = {"model_name": "m", "inputs": [], "requested_output_names": ["Y"], **options}
    return pb_utils.InferenceRequest(**fields)


class CallsTest(unittest.TestCase):
    def setUp(self):
        self.jobs = []
        runtime.phase = RUNNING
        runtime.instance_name = "m_0_0"
        runtime.later = self.jobs.append

    def tearDown(self):
        runtime.phase = LOADING
        runtime.calls = None

    def serve(self, answer=lambda server, message: None):
        server = Server(answer)
        runtime.calls = server.calls
        return server

    def test_a_request_is_one_frame_with_aligned_tensors(self):
        server = self.serve(lambda server, message: server.result(message["callId"], True, [1, 2]))
        inputs = [
            pb_utils.Tensor("A", np.array([7], np.int8)),
            pb_utils.Tensor("B", np.array([b"x"], np.object_)),
            pb_utils.Tensor("C", np.zeros((0, 2), np.float64)),
        ]
        with working_for(((4, 1), (4, 2))):
            response = request(inputs=inputs, parameters={"a": True, "b": -1}, correlation_id=2**60).exec()
        self.assertEqual(response.output_tensors()[0].as_numpy().tolist(), [[1, 2]])
        self.assertEqual(response.parameters(), "{}")
        ((_, message),) = server.messages
        self.assertEqual(
            message,
            {
                "callId": 1,
                "kind": "infer",
                "parent": [{"batchId": 4, "request": 1}, {"batchId": 4, "request": 2}],
                "model": "m",
                "version": -1,
                "id": "",
                "correlationId": {"uint64": str(2**60)},
                "flags": 0,
                "priority": 0,
                "timeoutUs": 0,
                "parameters": {"a": {"bool": True}, "b": {"int64": "-1"}},
                "requestedOutputs": ["Y"],
                "isStream": False,
                "inputs": [
                    {"name": "A", "datatype": "INT8", "shape": [1], "offset": 0, "byteLength": 1},
                    {"name": "B", "datatype": "BYTES", "shape": [1], "offset": 64, "byteLength": 5},
                    {"name": "C", "datatype": "FP64", "shape": [0, 2], "offset": 128, "byteLength": 0},
                ],
            },
        )
        self.assertEqual(server.payloads[0], b"\7".ljust(64, b"\0") + b"\1\0\0\0x".ljust(64, b"\0"))

    def test_errors_are_responses(self):
        error = {"code": "NOT_FOUND", "message": "gone"}
        self.serve(lambda server, message: server.result(message["callId"], True, error=error))
        response = request().exec()
        self.assertTrue(response.has_error())
        self.assertEqual(response.error().code(), pb_utils.TritonError.INTERNAL)
        self.assertEqual((response.error().message(), response.output_tensors()), ("gone", []))
        self.serve(lambda server, message: server.result(message["callId"], True))
        self.assertEqual(request().exec().error().message(), "Unexpected empty response.")
        too_large = request(parameters={"a": 2**63}).exec()
        self.assertEqual(
            too_large.error().message(),
            "Model m - Error when running inference: Unsupported value type on parameters",
        )

    def test_only_in_execute(self):
        self.serve()
        for phase in (INITIALIZING, FINALIZING):
            runtime.phase = phase
            with self.assertRaisesRegex(
                pb_utils.TritonModelException, "^BLS is only supported during the 'execute' function.$"
            ):
                request().exec()

    def test_a_stream_keeps_what_was_read_and_ends(self):
        def answer(server, message):
            for number in range(3):
                server.result(message["callId"], False, [number, 0])
            server.result(message["callId"], True)

        self.serve(answer)
        responses = request().exec(decoupled=True)
        self.assertIsInstance(responses, pb_utils.ResponseIterator)
        first = list(responses)
        self.assertEqual([len(response.output_tensors()) for response in first], [1, 1, 1, 0])
        self.assertEqual(list(responses), first)
        responses.cancel()

    def test_a_stream_is_paused_and_goes_on(self):
        def answer(server, message):
            for _ in range(UNREAD_MAX if message.get("kind") else 0):
                server.result(message["callId"], False, [0, 0])

        server = self.serve(answer)
        responses = request().exec(decoupled=True)
        self.assertEqual(server.messages[-1], (FRAME_CALL_FLOW, {"callId": 1, "isPaused": True}))
        for _ in range(UNREAD_MAX - UNREAD_RESUME - 1):
            next(responses)
        self.assertEqual(len(server.messages), 2)
        next(responses)
        self.assertEqual(server.messages[-1], (FRAME_CALL_FLOW, {"callId": 1, "isPaused": False}))
        responses.cancel()
        self.assertEqual(server.types()[-1], FRAME_CALL_CANCEL)

    def test_a_stream_that_is_let_go_holds_up_nobody(self):
        def answer(server, message):
            for _ in range(UNREAD_MAX if message.get("kind") else 0):
                server.result(message["callId"], False, [0, 0])

        server = self.serve(answer)
        request().exec(decoupled=True)
        gc.collect()
        (drop,) = self.jobs
        drop()
        self.assertEqual(server.messages[-1], (FRAME_CALL_FLOW, {"callId": 1, "isPaused": False}))
        for _ in range(2 * UNREAD_MAX):
            server.result(1, False, [0, 0])
        self.assertEqual(len(server.messages), 3)

    def test_what_waits_is_told_of_the_stop(self):
        server = self.serve()
        answers = []
        thread = threading.Thread(target=lambda: answers.append(request().exec()))
        thread.start()
        while not server.messages:
            pass
        server.calls.stop()
        thread.join(5)
        self.assertEqual(answers[0].error().message(), "the instance is being stopped")
        self.assertEqual(request().exec().error().code(), pb_utils.TritonError.UNAVAILABLE)

    def test_a_coroutine_waits_and_can_give_up(self):
        server = self.serve()

        async def wait():
            answer = request().async_exec()
            threading.Timer(0.02, server.result, [1, True, [3, 4]]).start()
            array = (await answer).output_tensors()[0].as_numpy()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(request().async_exec(), 0.02)
            return array.tolist()

        self.assertEqual(asyncio.run(wait()), [[3, 4]])
        self.assertEqual(server.messages[-1], (FRAME_CALL_CANCEL, {"callId": 2}))
        # It comes after the loop has gone.
        server.result(2, True, [0, 0])
        with self.assertRaises(RuntimeError):
            request().async_exec()

    def test_the_parent_is_what_the_code_works_for(self):
        server = self.serve(lambda server, message: server.result(message["callId"], True, [0, 0]))

        async def call():
            await request().async_exec()

        with working_for(((1, 0),)):
            asyncio.run(call())
            thread = threading.Thread(target=request().exec)
            thread.start()
            thread.join()
        request().exec()
        parents = [message.get("parent") for _, message in server.messages]
        self.assertEqual(parents, [[{"batchId": 1, "request": 0}], None, None])

    def test_load_and_unload(self):
        server = self.serve(lambda server, message: server.result(message["callId"], True, value=True))
        pb_utils.load_model("a", '{"backend":"b"}', {"file:1/model.py": b"12", "1/other": b"3"})
        pb_utils.unload_model("a", unload_dependents=True)
        self.assertTrue(pb_utils.is_model_ready("a", "2"))
        files = [
            {"path": "1/model.py", "offset": 0, "byteLength": 2},
            {"path": "1/other", "offset": 64, "byteLength": 1},
        ]
        messages = [{key: value for key, value in message.items() if key != "callId"} for _, message in server.messages]
        self.assertEqual(
            messages,
            [
                {"kind": "load", "model": "a", "config": '{"backend":"b"}', "files": files},
                {"kind": "unload", "model": "a", "isDependents": True},
                {"kind": "ready", "model": "a", "version": "2"},
            ],
        )
        with self.assertRaisesRegex(
            pb_utils.TritonModelException,
            "^failed to load model 'a', files should be a dictionary of file paths and file contents$",
        ):
            pb_utils.load_model("a", files=[])
        with self.assertRaisesRegex(pb_utils.TritonModelException, "'-1', version should be an integral value > 0$"):
            pb_utils.is_model_ready("a", "-1")
        runtime.phase = FINALIZING
        with self.assertRaisesRegex(pb_utils.TritonModelException, "^Failed to load model: .*supported$"):
            pb_utils.load_model("a")


class RequestTest(unittest.TestCase):
    def refused(self, text, **options):
        with self.assertRaises(pb_utils.TritonModelException) as caught:
            request(**options)
        self.assertEqual(str(caught.exception), text)

    def test_what_a_request_must_not_be(self):
        where = "for request with id 'r' and model name 'm' should not be empty."
        self.refused("Input tensor %s" % where, request_id="r", inputs=[None])
        self.refused("Requested output name %s" % where, request_id="r", requested_output_names=["a", ""])
        self.refused("Correlation ID must be integer or string", correlation_id=1.5)
        self.refused("Expect N8pybind114dictE, got <class 'list'>", parameters=[])
        self.refused(
            "Expect parameters values to have type bool/int/str, found type <class 'float'>", parameters={"a": 1.0}
        )
        self.refused("Expect parameters keys to have type str, found type <class 'int'>", parameters={1: 1})
        for wrong in ({"model_name": None}, {"inputs": None}, {"inputs": [1]}, {"requested_output_names": "Y"}):
            with self.assertRaises(TypeError):
                request(**wrong)
        for wrong in ({"flags": -1}, {"timeout": 2**64}, {"model_version": "1"}, {"correlation_id": -1}):
            with self.assertRaises(TypeError):
                request(**wrong)

    def test_what_a_request_says_of_itself(self):
        made = request(request_id="r", correlation_id="c", flags=1, timeout=5, parameters={"a": 1})
        self.assertEqual((made.request_id(), made.correlation_id(), made.timeout()), ("r", "c", 5))
        made.set_flags(2)
        self.assertEqual((made.flags(), made.parameters(), made.inputs()), (2, '{"a": 1}', []))
        self.assertEqual(made.requested_output_names(), {"Y"})
        self.assertIsNone(made.trace().get_context())
        with self.assertRaises(TypeError):
            pb_utils.PreferredMemory(None)
