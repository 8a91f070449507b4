"""The rules of answers and response senders, with Triton's texts."""
import asyncio
import gc
import threading
import time
import unittest

import numpy as np
import triton_python_backend_utils as pb_utils
from nereid_host.answer import DROPPED, Answer, AnswerLink
from nereid_host.received_request import ReceivedRequest
from nereid_host.response_frame import BY_SENDER

KEY = (4, 2)
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class Wire:
    """Remembers what was sent."""

    def __init__(self, is_decoupled):
        self.parts = []
        self.dropped = []
        self.link = AnswerLink(
            send_part=lambda key, is_final, result: self.parts.append((key, is_final, result)),
            note_dropped=lambda key, result: self.dropped.append((key, result)),
            is_decoupled=is_decoupled,
            output_indexes={"A": 0, "B": 1},
        )

    def request(self, info=b""):
        return ReceivedRequest([], info, Answer(KEY, self.link, {"B": 1}))


def respond(*names):
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, np.zeros(1, np.int8)) for name in names])


class SenderTest(unittest.TestCase):
    def refuses(self, text, sender, *args, **kwargs):
        with self.assertRaises(pb_utils.TritonModelException) as caught:
            sender.send(*args, **kwargs)
        self.assertEqual(str(caught.exception), text)

    def test_a_model_that_is_not_decoupled_sends_one_response(self):
        wire = Wire(is_decoupled=False)
        sender = wire.request().get_response_sender()
        self.refuses(
            "Inference Response object must be provided when the response flags is set to zero.", sender
        )
        self.refuses("Unable to send response. Unsupported flag provided.", sender, respond("B"), 2)
        self.refuses(
            "Unable to send response. Non-decoupled model cannot send complete final before sending a response.",
            sender,
            flags=FINAL,
        )
        sender.send(respond("B"))
        self.refuses(
            "Unable to send response. Non-decoupled model cannot send more than one response.",
            sender,
            respond("B"),
        )
        sender.send(flags=FINAL)
        self.refuses("Unable to send response. Response sender has been closed.", sender, flags=FINAL)
        self.assertEqual([(key, is_final) for key, is_final, _ in wire.parts], [(KEY, False), (KEY, True)])

    def test_a_decoupled_model_sends_many_and_none(self):
        wire = Wire(is_decoupled=True)
        sender = wire.request().get_response_sender()
        for _ in range(3):
            sender.send(respond("B"))
        sender.send(flags=FINAL)
        self.refuses("Unable to send response. Response sender has been closed.", sender, respond("B"))
        self.assertEqual([is_final for _, is_final, _ in wire.parts], [False, False, False, True])
        wire.request().get_response_sender().send(flags=FINAL)
        self.assertEqual(wire.parts[-1], (KEY, True, BY_SENDER))

    def test_only_requested_outputs_are_sent(self):
        wire = Wire(is_decoupled=True)
        request = wire.request()
        request.get_response_sender().send(respond("A", "B", "UNKNOWN"), FINAL)
        self.assertEqual([output[0] for output in wire.parts[0][2].outputs], [1])
        self.assertEqual(request.requested_output_names(), {"B"})

    def test_a_request_that_is_let_go_is_ended(self):
        for is_decoupled in (False, True):
            wire = Wire(is_decoupled)
            wire.request().get_response_sender()
            gc.collect()
            self.assertEqual([result.message for _, result in wire.dropped], [DROPPED])
        wire = Wire(is_decoupled=False)
        wire.request().get_response_sender().send(respond("B"))
        self.assertEqual(wire.dropped, [(KEY, BY_SENDER)])

    def test_a_paused_sender_waits_until_it_is_resumed_or_cancelled(self):
        for end in ("resume", "cancel"):
            wire = Wire(is_decoupled=True)
            request = wire.request()
            answer = request._answer
            answer.set_paused(True)
            thread = threading.Thread(target=request.get_response_sender().send, args=(respond("B"), FINAL))
            thread.start()
            time.sleep(0.05)
            self.assertEqual(wire.parts, [])
            if end == "resume":
                answer.set_paused(False)
            else:
                answer.cancel()
            thread.join(5)
            self.assertEqual(len(wire.parts), 1)

    def test_on_an_event_loop_a_paused_sender_holds_parts_back_in_order(self):
        wire = Wire(is_decoupled=True)
        request = wire.request()
        request._answer.set_paused(True)

        async def stream():
            sender = request.get_response_sender()
            sender.send(respond("B"))
            sender.send(flags=FINAL)

        asyncio.run(stream())
        self.assertEqual(wire.parts, [])
        request._answer.set_paused(False)
        self.assertEqual([is_final for _, is_final, _ in wire.parts], [False, True])

    def test_a_cancelled_request_sends_only_its_end(self):
        wire = Wire(is_decoupled=True)
        request = wire.request()
        request._answer.cancel()
        self.assertTrue(request.is_cancelled())
        request.get_response_sender().send(respond("B"))
        request.get_response_sender().send(flags=FINAL)
        self.assertEqual([is_final for _, is_final, _ in wire.parts], [True])


class RequestTest(unittest.TestCase):
    def test_the_request_info(self):
        info = b'{"id":"i","correlationId":"s9","flags":3,"timeoutUs":18446744073709551611,'
        info += b'"parameters":{"b":1,"a":"\xc3\xa9","f":true,"d":1.0}}'
        request = Wire(False).request(info)
        self.assertEqual((request.request_id(), request.correlation_id(), request.flags()), ("i", "s9", 3))
        self.assertEqual(request.timeout(), 18446744073709551611)
        self.assertEqual(request.parameters(), '{"b":1,"a":"é","f":true,"d":1.0}')
        request.set_flags(2)
        self.assertEqual(request.flags(), 2)

    def test_a_request_without_info(self):
        request = Wire(False).request(b'{"id":"","correlationId":0,"flags":0,"timeoutUs":0,"parameters":{}}')
        self.assertEqual((request.request_id(), request.correlation_id(), request.parameters()), ("", 0, "{}"))


class ResponseTest(unittest.TestCase):
    def test_errors_and_their_codes(self):
        self.assertEqual(pb_utils.TritonError("x").code(), pb_utils.TritonError.INTERNAL)
        response = pb_utils.InferenceResponse(error=pb_utils.TritonError("x", pb_utils.TritonError.NOT_FOUND))
        self.assertTrue(response.has_error())
        self.assertEqual(int(response.error().code()), 2)
        self.assertIsNone(pb_utils.InferenceResponse().error())
        for wrong in (lambda: pb_utils.TritonError("x", 99), lambda: pb_utils.InferenceResponse(error="x")):
            with self.assertRaises(TypeError):
                wrong()

    def test_parameters(self):
        self.assertEqual(pb_utils.InferenceResponse(parameters={"a": 1}).parameters(), '{"a": 1}')
        self.assertEqual(pb_utils.InferenceResponse().parameters(), "{}")
        with self.assertRaisesRegex(
            pb_utils.TritonModelException,
            "^Expect parameters values to have type bool/int/str, found type <class 'float'>$",
        ):
            pb_utils.InferenceResponse(parameters={"a": 1.5})

    def test_no_empty_output(self):
        with self.assertRaisesRegex(
            pb_utils.TritonModelException, "^Output tensor for inference response should not be empty.$"
        ):
            pb_utils.InferenceResponse([None])
