"""Payloads in shared memory, on a real file in memory, and what a frame says of them."""
import mmap
import os
import socket
import sys
import tempfile
import unittest

import numpy as np
from nereid_host.frames import FrameReader
from nereid_host.protocol import FRAME_EXECUTE, IN_SLOT, PREAMBLE, encode_head
from nereid_host.response_frame import ExecuteTimes, ResponseSlot, Result, encode_response_frame
from nereid_host.slots import PAYLOAD_BYTES_MIN, SharedSlots

SLOT_BYTES = 256 * 1024
TIMES = ExecuteTimes(1, 2, 3)


@unittest.skipUnless(sys.platform.startswith("linux"), "the server shares memory on Linux only")
class SlotsTest(unittest.TestCase):
    def setUp(self):
        file = tempfile.TemporaryFile()
        self.addCleanup(file.close)
        os.ftruncate(file.fileno(), 2 * SLOT_BYTES)
        self.memory = mmap.mmap(file.fileno(), 0)
        self.slots = SharedSlots(file.fileno(), SLOT_BYTES)

    def test_an_input_is_read_from_its_slot_and_is_a_copy(self):
        near, far = socket.socketpair()
        self.addCleanup(near.close)
        self.addCleanup(far.close)
        reader = FrameReader(far)
        reader.slots = self.slots
        self.memory[SLOT_BYTES : SLOT_BYTES + 4] = b"abcd"
        near.sendall(encode_head(FRAME_EXECUTE, b"header", 4, IN_SLOT, 2))
        frame = reader.read()
        self.assertEqual((frame.header, frame.slot, bytes(frame.payload)), (b"header", 2, b"abcd"))
        self.memory[SLOT_BYTES : SLOT_BYTES + 4] = b"wxyz"
        frame.payload[0] = ord("A")
        self.assertEqual(bytes(frame.payload), b"Abcd")
        self.assertEqual(self.memory[SLOT_BYTES : SLOT_BYTES + 4], b"wxyz")

    def test_large_outputs_go_to_the_slot_one_behind_another(self):
        first = np.arange(PAYLOAD_BYTES_MIN, dtype=np.uint8)
        frame = self.respond([(0, 2, [len(first)], first), (1, 2, [3], b"end")])
        self.assertEqual(len(frame), 1)
        _, _, place, slot, payload_bytes = PREAMBLE.unpack_from(frame[0])
        self.assertEqual((place, slot, payload_bytes), (IN_SLOT, 1, len(first) + 3))
        self.assertEqual(self.memory[: len(first)], first.tobytes())
        self.assertEqual(self.memory[len(first) : len(first) + 3], b"end")

    def test_small_and_too_large_outputs_go_with_the_frame(self):
        for count in (PAYLOAD_BYTES_MIN, SLOT_BYTES + 1):
            frame = self.respond([(0, 2, [count], np.zeros(count, np.uint8))])
            _, _, place, _, payload_bytes = PREAMBLE.unpack_from(frame[0])
            self.assertEqual((place, payload_bytes), (0, count))
            self.assertEqual(sum(map(len, frame)) % 64, 0)

    def respond(self, outputs):
        return encode_response_frame(7, TIMES, [Result(outputs)], ResponseSlot(self.slots, 1))


if __name__ == "__main__":
    unittest.main()
