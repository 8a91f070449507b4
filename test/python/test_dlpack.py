"""DLPack: memory shared with numpy itself, and with torch where it is installed."""
import gc
import importlib.util
import unittest
import weakref

import numpy as np
from nereid_host.model_exception import TritonModelException
from nereid_host.tensor import NUMPY_TYPES, TYPE_BF16, TYPE_BYTES, Tensor

HAS_TORCH = importlib.util.find_spec("torch") is not None


class Elsewhere:
    """A tensor of another device."""

    def __init__(self, device_type):
        self._device_type = device_type

    def __dlpack_device__(self):
        return (self._device_type, 0)

    def __dlpack__(self, stream=None):
        raise AssertionError("the device is looked at first")


class DlpackTest(unittest.TestCase):
    def refuses(self, text, tensor):
        with self.assertRaises(TritonModelException) as caught:
            Tensor.from_dlpack("a", tensor)
        self.assertEqual(str(caught.exception), text)

    def test_every_type_goes_through_a_capsule_without_a_copy(self):
        for number, dtype in NUMPY_TYPES.items():
            if number == TYPE_BYTES:
                continue
            array = np.array([[0, 1, 1]], dtype)
            taken = Tensor.from_dlpack("b", Tensor("a", array).to_dlpack())
            self.assertEqual((taken.name(), taken.triton_dtype(), taken.shape()), ("b", number, [1, 3]))
            self.assertEqual(taken.as_numpy().tolist(), array.tolist())
            array[0, 0] = 1
            self.assertEqual(taken.as_numpy()[0, 0], 1, dtype)

    def test_bf16_stays_as_it_is(self):
        given = Tensor.received("a", TYPE_BF16, (2,), np.array([0x3F80, 0x4000], np.uint16).view(np.uint8))
        taken = Tensor.from_dlpack("b", given.to_dlpack())
        self.assertEqual((taken.triton_dtype(), bytes(taken.to_bytes())), (TYPE_BF16, b"\x80\x3f\x00\x40"))
        with self.assertRaisesRegex(TritonModelException, "^Tensor dtype is BF16 and cannot be converted to NumPy."):
            taken.as_numpy()

    def test_numpy_takes_and_gives_tensors(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.assertEqual(Tensor("a", array).__dlpack_device__(), (1, 0))
        self.assertEqual(Tensor.from_dlpack("a", array).as_numpy().tolist(), array.tolist())
        if hasattr(np, "from_dlpack"):
            self.assertEqual(np.from_dlpack(Tensor("a", array)).tolist(), array.tolist())

    def test_shapes_without_dimensions_and_without_elements(self):
        scalar = Tensor.from_dlpack("a", Tensor("a", np.array(7, np.int32)).to_dlpack())
        self.assertEqual((scalar.shape(), scalar.as_numpy().tolist()), ([], 7))
        empty = Tensor.from_dlpack("a", Tensor("a", np.zeros((2, 0), np.int8)).to_dlpack())
        self.assertEqual(empty.as_numpy().shape, (2, 0))

    def test_read_only_arrays_are_copied(self):
        array = np.frombuffer(b"\1\2", np.uint8)
        self.assertEqual(Tensor.from_dlpack("a", Tensor("a", array).to_dlpack()).as_numpy().tolist(), [1, 2])

    def test_memory_is_held_as_long_as_needed_and_no_longer(self):
        class Watched(np.ndarray):
            pass

        array = np.ones(4, np.int64).view(Watched)
        gone = weakref.ref(array)
        taken = Tensor.from_dlpack("a", array)
        unused = Tensor("a", array).to_dlpack()
        del array
        gc.collect()
        view = taken.as_numpy()
        del taken
        self.assertEqual(view.tolist(), [1, 1, 1, 1])
        self.assertIsNotNone(gone())
        del view, unused
        gc.collect()
        self.assertIsNone(gone())

    def test_what_is_refused(self):
        self.refuses(
            "DLPack tensor is not contiguous. "
            "Only contiguous DLPack tensors that are stored in C-Order are supported.",
            np.zeros((2, 3), np.int8).T,
        )
        self.refuses(
            "Provided tensor is not supported. Tensor must be a DLPack capsule         or have `__dlpack__` and "
            "`__dlpack_device__` attributes",
            [1],
        )
        self.refuses(
            "DLPack capsule passed pointer to memory allocated on GPU device,           when GPU is not available",
            Elsewhere(2),
        )
        self.refuses("DLDevice type 10 is not support by Python backend.", Elsewhere(10))
        self.refuses("Dtype is invalid.", np.zeros(1, np.complex64))
        with self.assertRaisesRegex(TritonModelException, "^DLPack does not have support for string tensors.$"):
            Tensor("a", np.array([b"x"])).to_dlpack()
        with self.assertRaisesRegex(TritonModelException, "^Tensor name cannot be an empty string.$"):
            Tensor.from_dlpack("", np.zeros(1))

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_torch_takes_and_gives_tensors(self):
        import torch
        from torch.utils.dlpack import from_dlpack

        given = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
        taken = Tensor.from_dlpack("a", given)
        self.assertEqual((taken.triton_dtype(), taken.shape()), (TYPE_BF16, [2, 3]))
        self.assertTrue(torch.equal(from_dlpack(taken.to_dlpack()), given))
        self.assertTrue(torch.equal(from_dlpack(Tensor("a", np.ones(2, np.bool_))), torch.ones(2, dtype=torch.bool)))
