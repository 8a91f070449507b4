"""Payloads in shared memory, on a real file in memory, and what a frame says of them."""
import mmap
import os
import socket
import struct
import sys
import tempfile
import unittest

import numpy as np
from nereid_host.frames import FrameReader
from nereid_host.protocol import FRAME_EXECUTE, IN_SLOT, PREAMBLE, encode_head
from nereid_host.response_frame import ExecuteTimes, Result, encode_response_frame
from nereid_host.slots import LENT_PER_KEPT_MIN, PAYLOAD_BYTES_MIN, SharedSlots

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

    def test_an_input_is_lent_from_its_slot(self):
        near, far = socket.socketpair()
        self.addCleanup(near.close)
        self.addCleanup(far.close)
        reader = FrameReader(far)
        reader.slots = self.slots
        self.memory[SLOT_BYTES : SLOT_BYTES + 4] = b"abcd"
        near.sendall(encode_head(FRAME_EXECUTE, b"header", 4, IN_SLOT, 2))
        frame = reader.read()
        self.assertEqual((frame.header, frame.slot, bytes(frame.payload)), (b"header", 2, b"abcd"))
        frame.payload[0] = ord("A")
        self.assertEqual(self.memory[SLOT_BYTES : SLOT_BYTES + 4], b"Abcd")

    def test_what_a_model_keeps_stays_as_it_was_when_the_slot_is_used_again(self):
        self.memory[:4096] = bytes(range(256)) * 16
        kept = self.slots.read(1, 4096)[64:128].view(np.uint16)
        address = kept.ctypes.data
        self.finish(1)
        self.memory[:4096] = bytes(4096)
        self.assertEqual(kept.tobytes(), bytes(range(64, 128)))
        self.assertEqual(kept.ctypes.data, address)
        kept[0] = 7
        self.assertEqual(self.memory[:4096], bytes(4096))
        # The slot itself goes on.
        self.memory[:4] = b"next"
        self.assertEqual(bytes(self.slots.read(1, 4)), b"next")
        self.respond([(0, 2, [PAYLOAD_BYTES_MIN + 1], np.full(PAYLOAD_BYTES_MIN + 1, 5, np.uint8))])
        self.assertEqual(self.memory[: PAYLOAD_BYTES_MIN + 1], bytes([5]) * (PAYLOAD_BYTES_MIN + 1))
        self.assertEqual(kept[1:].tobytes(), bytes(range(66, 128)))

    def test_kept_memory_is_given_back_when_the_model_lets_go(self):
        def mapped():
            with open("/proc/self/maps") as maps:
                return sum(1 for line in maps)

        kept = [self.keep_one() for _ in range(LENT_PER_KEPT_MIN)]
        while_kept = mapped()
        del kept
        self.assertLess(mapped(), while_kept)

    def test_a_model_that_keeps_many_is_given_copies(self):
        for _ in range(LENT_PER_KEPT_MIN):
            self.slots.read(1, 64)
            self.finish(1)
        self.keep_one()
        self.assertTrue(np.shares_memory(self.slots.read(1, 64), self.slots.of(1)._bytes))
        self.finish(1)
        kept = [self.keep_one(), self.keep_one()]
        self.assertEqual([bytes(array) for array in kept], [b"kept", b"kept"])
        payload = self.slots.read(1, 64)
        self.assertFalse(np.shares_memory(payload, self.slots.of(1)._bytes))
        self.assertTrue(payload.flags.writeable)

    def test_copies_from_the_start_for_models_that_keep_their_requests(self):
        self.slots.copy_always()
        self.memory[:4] = b"abcd"
        payload = self.slots.read(1, 4)
        self.memory[:4] = b"wxyz"
        self.assertEqual(bytes(payload), b"abcd")

    def test_a_child_of_the_model_does_not_see_what_comes_later(self):
        self.memory[:4] = b"mine"
        payload = self.slots.read(1, 4)
        wait_end, go_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(wait_end, 1)
            os._exit(0 if bytes(payload) == b"mine" else 1)
        del payload
        self.finish(1)
        self.memory[:4] = b"next"
        os.write(go_end, b"!")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for fd in (wait_end, go_end):
            os.close(fd)

    def test_large_outputs_go_to_the_slot_one_behind_another(self):
        first = np.arange(PAYLOAD_BYTES_MIN, dtype=np.uint8)
        frame = self.respond([(0, 2, [len(first)], first), (1, 2, [3], b"end")])
        self.assertEqual(self.place_of(frame), (IN_SLOT, 1, len(first) + 3))
        self.assertEqual(self.memory[: len(first)], first.tobytes())
        self.assertEqual(self.memory[len(first) : len(first) + 3], b"end")

    def test_outputs_that_are_inputs_stay_where_they_are_and_others_come_behind(self):
        count = PAYLOAD_BYTES_MIN
        self.memory[: 2 * count] = b"a" * count + b"b" * count
        payload = self.slots.read(1, 2 * count)
        outputs = [
            (0, 2, [count], payload[count:]),
            (1, 2, [5], b"other"),
            (2, 2, [count], payload[:count]),
            (3, 2, [8], payload[count : count + 8]),
        ]
        del payload
        frame = self.respond(outputs)
        self.assertEqual(self.place_of(frame), (IN_SLOT, 1, 2 * count + 5))
        self.assertEqual(self.ranges_of(frame[0], 4), [(count, count), (2 * count, 5), (0, count), (count, 8)])
        self.assertEqual(self.memory[: 2 * count + 5], b"a" * count + b"b" * count + b"other")

    def test_an_output_far_behind_is_moved_to_the_front(self):
        count = PAYLOAD_BYTES_MIN + 64
        self.memory[3 * count : 4 * count] = b"d" * count
        payload = self.slots.read(1, 4 * count)
        outputs = [(0, 2, [count], payload[3 * count :])]
        del payload
        frame = self.respond(outputs)
        self.assertEqual(self.place_of(frame), (IN_SLOT, 1, count))
        self.assertEqual(self.memory[:count], b"d" * count)

    def test_outputs_that_do_not_fit_behind_those_that_are_inputs_go_with_the_frame(self):
        self.memory[:SLOT_BYTES] = b"x" * SLOT_BYTES
        payload = self.slots.read(1, SLOT_BYTES)
        outputs = [(0, 2, [SLOT_BYTES], payload), (1, 2, [5], b"other")]
        del payload
        frame = self.respond(outputs)
        self.memory[:SLOT_BYTES] = bytes(SLOT_BYTES)
        self.assertEqual(self.place_of(frame), (0, 0, SLOT_BYTES + 5))
        self.assertEqual(b"".join(bytes(piece) for piece in frame[1:3]), b"x" * SLOT_BYTES + b"other")

    def test_an_output_in_the_slot_that_the_model_keeps_is_sent_and_kept(self):
        count = PAYLOAD_BYTES_MIN + 64
        self.memory[:count] = b"k" * count
        payload = self.slots.read(1, count)
        frame = self.respond([(0, 2, [count], payload)])
        self.assertEqual(self.place_of(frame), (IN_SLOT, 1, count))
        self.assertEqual(self.memory[:count], b"k" * count)
        self.memory[:count] = bytes(count)
        self.assertEqual(bytes(payload), b"k" * count)

    def test_small_and_too_large_outputs_go_with_the_frame(self):
        for count in (PAYLOAD_BYTES_MIN, SLOT_BYTES + 1):
            frame = self.respond([(0, 2, [count], np.zeros(count, np.uint8))])
            self.assertEqual(self.place_of(frame), (0, 0, count))
            self.assertEqual(sum(map(len, frame)) % 64, 0)

    def keep_one(self):
        self.memory[:4] = b"kept"
        kept = self.slots.read(1, 4)
        self.finish(1)
        self.memory[:4] = bytes(4)
        return kept

    def finish(self, number):
        self.slots.finish_answer(self.slots.of(number))

    def respond(self, outputs):
        results = [Result(outputs)]
        del outputs
        frame = encode_response_frame(7, TIMES, results, self.slots.of(1))
        results[0].outputs.clear()
        self.finish(1)
        return frame

    def place_of(self, frame):
        _, _, place, slot, payload_bytes = PREAMBLE.unpack_from(frame[0])
        return place, slot, payload_bytes

    def ranges_of(self, head, count):
        """Offset and length of each output of rank 1 in a RESPONSE with one result."""
        fields = struct.Struct("<HBQQQB")
        first = PREAMBLE.size + 32 + 3
        return [fields.unpack_from(head, first + i * fields.size)[3:5] for i in range(count)]


if __name__ == "__main__":
    unittest.main()
