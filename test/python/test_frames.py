"""Frames on a real socket pair, and the codecs of EXECUTE and RESPONSE headers."""
import socket
import struct
import threading
import time
import unittest

import numpy as np
from nereid_host.execute_frame import KNOWN_MAX, ExecuteDecoder
from nereid_host.frames import FrameReader, FrameWriter
from nereid_host.protocol import FRAME_EXECUTE, FRAME_LOG, align_up, encode_control_frame, encode_head
from nereid_host.response_frame import ExecuteTimes, Result, encode_part_frame, encode_response_frame


class FramesTest(unittest.TestCase):
    def setUp(self):
        near, far = socket.socketpair()
        self.addCleanup(near.close)
        self.addCleanup(far.close)
        self.writer = FrameWriter(near)
        self.reader = FrameReader(far)
        self.near = near

    def test_frames_of_all_sizes_arrive_whole_and_aligned(self):
        sizes = [0, 1, 63, 64, 65, 70_000, 5_000_000]
        payloads = [np.arange(size, dtype=np.uint32).view(np.uint8)[:size].copy() for size in sizes]

        def send():
            for payload in payloads:
                middle = len(payload) // 3
                padding = bytes(align_up(len(payload)) - len(payload))
                head = encode_head(FRAME_EXECUTE, b"h" * len(payload[:200]), len(payload))
                self.writer.send([head, payload[:middle], payload[middle:], padding])
            self.writer.send([encode_control_frame(FRAME_LOG, {"a": 1})])
            self.near.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        for payload in payloads:
            frame = self.reader.read()
            self.assertEqual((frame.type, len(frame.header)), (FRAME_EXECUTE, min(200, len(payload))))
            if len(payload) == 0:
                self.assertIsNone(frame.payload)
                continue
            self.assertTrue(np.array_equal(frame.payload[: len(payload)], payload))
            self.assertEqual(frame.payload.ctypes.data % (64 if len(payload) > 4096 else 8), 0)
            frame.payload[0] = 9
        self.assertEqual(bytes(self.reader.read().header), b'{"a": 1}')
        self.assertIsNone(self.reader.read())
        thread.join()

    def test_a_server_that_is_gone_is_the_end_of_the_stream(self):
        self.near.sendall(encode_control_frame(FRAME_LOG, {})[:20])
        self.near.close()
        self.assertIsNone(self.reader.read())
        self.writer.send([b"x"])

    def test_frames_that_come_soon_are_looked_for_and_a_pause_costs_nothing(self):
        frame = encode_control_frame(FRAME_LOG, {"a": 1})
        echoed = threading.Event()

        def send():
            for _ in range(200):
                self.near.sendall(frame)
                self.near.recv(1)
            time.sleep(0.4)
            self.near.sendall(frame)
            echoed.wait()
            self.near.close()

        thread = threading.Thread(target=send)
        thread.start()
        far = self.reader._socket
        for _ in range(200):
            self.assertEqual(bytes(self.reader.read().header), b'{"a": 1}')
            far.sendall(b"x")
        before = time.process_time()
        self.assertEqual(bytes(self.reader.read().header), b'{"a": 1}')
        self.assertLess(time.process_time() - before, 0.1)
        echoed.set()
        self.assertIsNone(self.reader.read())
        thread.join()

    def test_execute_headers(self):
        ranges = struct.pack("<HBQQQQ", 1, 2, 1, 2, 64, 8) + struct.pack("<HBQQ", 0, 0, 0, 4)
        first = struct.pack("<H", 2) + ranges + struct.pack("<HHH", 2, 3, 0) + struct.pack("<I", 2) + b"{}"
        first += struct.pack("<IB", 0, 0)
        second = struct.pack("<HHIIB", 0, 0, 0, 5, 3)
        header = struct.pack("<II", 7, 2) + first + second
        payload = np.arange(72, dtype=np.uint8)
        self.writer.send([encode_head(FRAME_EXECUTE, header, 72), payload, bytes(56)])
        batch = ExecuteDecoder([("A", 2), ("B", 6)]).decode(self.reader.read())
        self.assertEqual((batch.id, batch.slot), (7, 0))
        request = batch.requests[0]
        self.assertEqual([(tensor.name(), tensor.shape()) for tensor in request.inputs], [("B", [1, 2]), ("A", [])])
        self.assertEqual([tensor.triton_dtype() for tensor in request.inputs], [6, 2])
        data = [bytes(tensor.to_bytes()) for tensor in request.inputs]
        self.assertEqual(data, [bytes(range(64, 72)), bytes(range(4))])
        self.assertEqual(request[1:], ((3, 0), b"{}", 0, 0))
        self.assertEqual(batch.requests[1], ([], (), b"", 5, 3))

    def test_headers_that_come_again_are_read_once_and_those_that_do_not_are_forgotten(self):
        decoder = ExecuteDecoder([("A", 2)])

        def send(batch_id, info, data):
            sent = struct.pack("<HHBQQQ", 1, 0, 1, 4, 0, 4) + struct.pack("<HI", 0, len(info)) + info + bytes(5)
            header = struct.pack("<II", batch_id, 1) + sent
            self.writer.send([encode_head(FRAME_EXECUTE, header, 4), data, bytes(60)])
            batch = decoder.decode(self.reader.read())
            (request,) = batch.requests
            return batch.id, request.info, bytes(request.inputs[0].to_bytes()), request.inputs

        first = send(1, b"{}", b"abcd")
        second = send(2, b"{}", b"wxyz")
        self.assertEqual(first[:3], (1, b"{}", b"abcd"))
        self.assertEqual(second[:3], (2, b"{}", b"wxyz"))
        # A model may change the list of one request.
        self.assertIsNot(first[3], second[3])
        for number in range(3 * KNOWN_MAX):
            info = b'{"id":"%d"}' % number
            self.assertEqual(send(number, info, b"abcd")[:2], (number, info))
        self.assertLessEqual(len(decoder._known), KNOWN_MAX)


class ResponseTest(unittest.TestCase):
    def decode(self, pieces):
        data = b"".join(bytes(piece) for piece in pieces)
        self.assertEqual(len(data) % 64, 0)
        header_bytes, frame_type, _, _, payload_bytes = struct.unpack_from("<IBBHQ", data)
        start = align_up(16 + header_bytes)
        return frame_type, data[16 : 16 + header_bytes], data[start : start + payload_bytes]

    def test_outputs_errors_and_senders(self):
        outputs = [(1, 8, [2], b"aaaabbbb"), (0, 13, [], b"c")]
        parameters = {"i": 1, "b": True, "s": "t"}
        results = [Result(outputs, parameters), Result(), Result(code=3, message="é", error_kind=2)]
        frame_type, header, payload = self.decode(encode_response_frame(5, ExecuteTimes(1, 2, 3), results))
        text = b'{"i": {"int64": "1"}, "b": {"bool": true}, "s": {"string": "t"}}'
        expected = struct.pack("<IQQQI", 5, 1, 2, 3, 3)
        expected += struct.pack("<BH", 1, 2) + struct.pack("<HBQQQB", 1, 1, 2, 0, 8, 8)
        expected += struct.pack("<HBQQB", 0, 0, 8, 1, 13) + struct.pack("<I", len(text)) + text
        expected += b"\2" + b"\0\3\2" + struct.pack("<I", 2) + "é".encode()
        self.assertEqual((frame_type, header, payload), (8, expected, b"aaaabbbbc"))

    def test_parts(self):
        frame_type, header, payload = self.decode(encode_part_frame(5, 6, True, Result()))
        self.assertEqual((frame_type, header, payload), (14, struct.pack("<IIBB", 5, 6, 1, 2), b""))
