"""Tensors, datatypes and BYTES elements."""
import unittest

import numpy as np
import triton_python_backend_utils as pb_utils
from nereid_host.tensor import TYPE_BF16, Tensor


class TensorTest(unittest.TestCase):
    def test_every_datatype_round_trips_through_its_bytes(self):
        for name, dtype in pb_utils.TRITON_STRING_TO_NUMPY.items():
            if name == "TYPE_STRING":
                continue
            sent = Tensor("a", np.array([[0, 1, 1]], dtype=dtype))
            received = Tensor.received("a", sent.triton_dtype(), (1, 3), np.array(sent.to_bytes()))
            array = received.as_numpy()
            self.assertEqual(array.dtype, np.dtype(dtype), name)
            self.assertEqual(array.tolist(), [[0, 1, 1]], name)
            array[0, 0] = 1
            self.assertEqual(received.as_numpy()[0, 0], 1)

    def test_elements_are_bytes_whatever_they_were(self):
        given = Tensor("a", np.array(["é", 3, None, b"\0z", b""], dtype=np.object_))
        received = Tensor.received("a", 13, (5,), np.frombuffer(given.to_bytes(), np.uint8))
        self.assertEqual(received.as_numpy().tolist(), ["é".encode(), b"3", b"None", b"\0z", b""])
        self.assertEqual(Tensor("a", np.array([b"x", b"yy"])).to_bytes(), b"\1\0\0\0x\2\0\0\0yy")

    def test_shapes_without_dimensions_and_without_elements(self):
        scalar = Tensor("a", np.array(7, dtype=np.int32))
        self.assertEqual((scalar.shape(), bytes(scalar.to_bytes())), ([], b"\7\0\0\0"))
        empty = Tensor("a", np.zeros((2, 0), dtype=np.float64))
        self.assertEqual((empty.shape(), len(empty.to_bytes())), ([2, 0], 0))
        self.assertEqual(Tensor.received("a", 11, (2, 0), None).as_numpy().shape, (2, 0))
        self.assertEqual(Tensor.received("a", 13, (0,), None).as_numpy().shape, (0,))

    def test_arrays_that_are_not_contiguous_are_copied(self):
        array = np.arange(6, dtype=np.int8).reshape(2, 3).T
        tensor = Tensor("a", array)
        self.assertTrue(tensor.as_numpy().flags.c_contiguous)
        self.assertEqual(bytes(tensor.to_bytes()), bytes([0, 3, 1, 4, 2, 5]))

    def test_what_triton_refuses(self):
        for array in (np.array(["text"]), np.zeros(2, ">f4"), np.zeros(2, np.complex64)):
            with self.assertRaisesRegex(pb_utils.TritonModelException, "^NumPy dtype is not supported.$"):
                Tensor("a", array)
        with self.assertRaisesRegex(pb_utils.TritonModelException, "^Tensor name cannot be an empty string.$"):
            Tensor("", np.zeros(1))
        with self.assertRaises(TypeError):
            Tensor("a", [1, 2])
        with self.assertRaisesRegex(pb_utils.TritonModelException, "BF16"):
            Tensor.received("a", TYPE_BF16, (1,), np.zeros(2, np.uint8)).as_numpy()

    def test_the_functions_of_the_module(self):
        self.assertEqual(pb_utils.numpy_to_triton_type(np.float16), 10)
        self.assertEqual(pb_utils.numpy_to_triton_type(np.object_), 13)
        self.assertEqual(pb_utils.triton_to_numpy_type(9), np.int64)
        with self.assertRaises(KeyError):
            pb_utils.triton_string_to_numpy("TYPE_BF16")
        self.assertEqual(pb_utils.serialize_byte_tensor(np.zeros(0, np.object_)), ())
        self.assertIsNone(pb_utils.serialize_byte_tensor(np.zeros(1)))
        encoded = pb_utils.serialize_byte_tensor(np.array([[b"a"], ["b"]], np.object_))
        self.assertEqual(pb_utils.deserialize_bytes_tensor(encoded).tolist(), [b"a", b"b"])
        with self.assertRaises(ValueError):
            pb_utils.deserialize_bytes_tensor(b"\5\0\0\0ab")
