"""Driver of shared-memory.test.ts: an ordinary tritonclient program whose tensors lie in shared memory.

    shared_memory.py PROTOCOL URL     PROTOCOL is http or grpc; URL serves add_sub_int32 and the identity models
                                      echo (FP32) and texts (BYTES)

Prints "ok NAME" or "not ok NAME" with the reason for each function whose name starts with check_.
"""
import importlib
import os
import sys
import traceback

import numpy as np
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, np_to_triton_dtype, serialize_byte_tensor

PROTOCOL, URL = sys.argv[1:3]
triton = importlib.import_module(f"tritonclient.{PROTOCOL}")


class Region:
    """A shared-memory object, registered under its name; both end with the block."""

    def __init__(self, client, name, size, key=None):
        self.client, self.name, self.size = client, name, size
        self.key = key or f"/nereid-test-{os.getpid()}-{name}"

    def __enter__(self):
        self.handle = shm.create_shared_memory_region(self.name, self.key, self.size)
        self.client.register_system_shared_memory(self.name, self.key, self.size)
        return self

    def __exit__(self, *_):
        self.client.unregister_system_shared_memory(self.name)
        shm.destroy_shared_memory_region(self.handle)

    def put(self, value, offset=0):
        shm.set_shared_memory_region(self.handle, [value], offset=offset)

    def get(self, dtype, shape, offset=0):
        return shm.get_contents_as_numpy(self.handle, dtype, shape, offset=offset)


def shared_input(name, value, region, size, offset=0):
    one = triton.InferInput(name, list(value.shape), np_to_triton_dtype(value.dtype))
    one.set_shared_memory(region, size, offset=offset)
    return one


def shared_output(name, region, size, offset=0):
    one = triton.InferRequestedOutput(name)
    one.set_shared_memory(region, size, offset=offset)
    return one


def raises(call, *texts):
    try:
        call()
    except InferenceServerException as error:
        for text in texts:
            assert text in str(error), f"expected {text!r} in {error!s}"
        return
    raise AssertionError(f"no error; expected one with {texts}")


def status(client):
    found = client.get_system_shared_memory_status()
    return sorted(found.regions) if PROTOCOL == "grpc" else [region["name"] for region in found]


def check_inputs_and_outputs_with_offsets(client):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    b = np.full_like(a, 3)
    n = a.nbytes
    with Region(client, "in", 4 * n) as inside, Region(client, "out", 4 * n) as outside:
        inside.put(a)
        inside.put(b, offset=2 * n)
        result = client.infer(
            "add_sub_int32",
            [shared_input("INPUT0", a, "in", n), shared_input("INPUT1", b, "in", n, offset=2 * n)],
            outputs=[shared_output("OUTPUT0", "out", n, offset=n), shared_output("OUTPUT1", "out", n, offset=3 * n)],
        )
        np.testing.assert_array_equal(outside.get(np.int32, [1, 16], offset=n), a + b)
        np.testing.assert_array_equal(outside.get(np.int32, [1, 16], offset=3 * n), a - b)
        np.testing.assert_array_equal(outside.get(np.int32, [1, 16]), np.zeros_like(a))
        output = result.get_output("OUTPUT0")
        shape = output["shape"] if isinstance(output, dict) else list(output.shape)
        assert shape == [1, 16], output
        assert not isinstance(output, dict) or "data" not in output, output


def check_one_input_shared_and_one_sent(client):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    b = np.full_like(a, 2)
    sent = triton.InferInput("INPUT1", [1, 16], "INT32")
    sent.set_data_from_numpy(b)
    with Region(client, "half", a.nbytes) as region:
        region.put(a)
        outputs = [triton.InferRequestedOutput("OUTPUT0"), shared_output("OUTPUT1", "half", a.nbytes)]
        result = client.infer("add_sub_int32", [shared_input("INPUT0", a, "half", a.nbytes), sent], outputs=outputs)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(region.get(np.int32, [1, 16]), a - b)


def check_the_same_request_again_reads_new_values(client):
    a = np.zeros((1, 4), np.float32)
    with Region(client, "again", a.nbytes) as region:
        for value in range(5):
            region.put(a + value)
            result = client.infer("echo", [shared_input("INPUT0", a, "again", a.nbytes)])
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + value)


def check_large_tensors(client):
    a = np.random.default_rng(7).random((1, 3_000_001), np.float32)
    with Region(client, "large", 2 * a.nbytes) as region:
        region.put(a)
        client.infer(
            "echo",
            [shared_input("INPUT0", a, "large", a.nbytes)],
            outputs=[shared_output("OUTPUT0", "large", a.nbytes, offset=a.nbytes)],
        )
        np.testing.assert_array_equal(region.get(np.float32, list(a.shape), offset=a.nbytes), a)


def check_texts(client):
    texts = np.array([["one", "", "zwölf", "x" * 300]], dtype=object)
    framed = serialize_byte_tensor(texts)
    size = len(framed.item())
    with Region(client, "texts", 2 * size) as region:
        region.put(framed)
        client.infer(
            "texts",
            [shared_input("INPUT0", texts, "texts", size)],
            outputs=[shared_output("OUTPUT0", "texts", size, offset=size)],
        )
        got = region.get(np.object_, [1, 4], offset=size)
        assert [text.decode() for text in got[0]] == list(texts[0]), got


def check_two_regions_of_one_object(client):
    a = np.arange(4, dtype=np.float32).reshape(1, 4)
    with Region(client, "first", 64) as region:
        client.register_system_shared_memory("second", region.key, 64)
        region.put(a)
        client.infer(
            "echo",
            [shared_input("INPUT0", a, "first", a.nbytes)],
            outputs=[shared_output("OUTPUT0", "second", a.nbytes, offset=32)],
        )
        np.testing.assert_array_equal(region.get(np.float32, [1, 4], offset=32), a)
        assert status(client) == ["first", "second"], status(client)
        client.unregister_system_shared_memory("second")
        assert status(client) == ["first"], status(client)


def check_an_object_removed_before_use(client):
    a = np.full((1, 4), 5, np.float32)
    with Region(client, "removed", a.nbytes) as region:
        region.put(a)
        os.unlink(f"/dev/shm{region.key}")
        result = client.infer("echo", [shared_input("INPUT0", a, "removed", a.nbytes)])
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a)
        # What destroy_shared_memory_region will remove.
        open(f"/dev/shm{region.key}", "w").close()


def check_status_and_unregister(client):
    with Region(client, "one", 64), Region(client, "two", 128):
        assert status(client) == ["one", "two"], status(client)
        found = client.get_system_shared_memory_status("two")
        size = found.regions["two"].byte_size if PROTOCOL == "grpc" else found[0]["byte_size"]
        assert size == 128, found
        client.unregister_system_shared_memory()
        assert status(client) == [], status(client)
        raises(lambda: client.get_system_shared_memory_status("two"), "Unable to find system shared memory region: 'two'")
    client.unregister_system_shared_memory("nobody")
    assert len(status(client)) == 0


def check_refusals(client):
    a = np.zeros((1, 4), np.float32)
    with Region(client, "small", 64) as region:
        again = lambda: client.register_system_shared_memory("small", region.key, 64)
        raises(again, "shared memory region 'small' already in manager")
        infer = lambda offset, size: client.infer("echo", [shared_input("INPUT0", a, "small", size, offset=offset)])
        raises(lambda: infer(64, 16), "Invalid offset for shared memory region: 'small'")
        raises(lambda: infer(56, 16), "Invalid offset + byte size for shared memory region: 'small'")
        raises(lambda: infer(0, 12), "Expected 16, got 12")
        raises(
            lambda: client.infer("echo", [shared_input("INPUT0", a, "small", 16)], outputs=[shared_output("OUTPUT0", "small", 12)]),
            "shared memory size specified with the request for output 'OUTPUT0' (12 bytes) should be at least 16 bytes to hold the results",
        )
        infer(0, 16)
    raises(lambda: infer(0, 16), "Unable to find shared memory region: 'small'")
    raises(
        lambda: client.register_system_shared_memory("none", "/nereid-test-nowhere", 64),
        "Unable to open shared memory region: '/nereid-test-nowhere'",
    )


def check_cuda_status(client):
    found = client.get_cuda_shared_memory_status()
    assert len(found.regions if PROTOCOL == "grpc" else found) == 0, found
    client.unregister_cuda_shared_memory()


def main():
    client = triton.InferenceServerClient(URL)
    failures = 0
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check(client)
                print(f"ok {name}")
            except Exception:
                failures += 1
                print(f"not ok {name}\n{traceback.format_exc()}")
                client.unregister_system_shared_memory()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
