"""Driver of grpc-stream.test.ts: start_stream, async_stream_infer and stop_stream of tritonclient.grpc.

    grpc_stream.py URL     URL serves the decoupled models repeat, square and py_repeat, and the identity models
                           quick, late (400 ms) and endless (60 s)
"""
import os
import queue
import sys
import time

import numpy as np
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm
from checks import counts, raises, run_checks, tensor, wait_until

URL = sys.argv[1]


class Stream:
    """One client with one open stream, and the answers that came so far."""

    def __init__(self, **options):
        self.client = triton.InferenceServerClient(URL)
        self.answers = queue.Queue()
        self.options = options

    def __enter__(self):
        self.client.start_stream(lambda result, error: self.answers.put((result, error)), **self.options)
        return self

    def __exit__(self, *_):
        self.client.stop_stream()
        self.client.close()

    def send(self, model, inputs, **more):
        self.client.async_stream_infer(model, inputs, **more)

    def echo(self, model, number):
        self.send(model, [tensor("INPUT0", np.full((1, 1), number, np.float32))], request_id=str(number))

    def repeat(self, values, delay_ms=0, wait_ms=0, **more):
        values = np.array(values, np.int32)
        delay = np.full(values.shape, delay_ms, np.uint32)
        wait = np.array([wait_ms], np.uint32)
        self.send("repeat", [tensor("IN", values), tensor("DELAY", delay), tensor("WAIT", wait)], **more)

    def next(self):
        """The next answer, which must be no error."""
        result, error = self.answers.get(timeout=20)
        assert error is None, error
        return result

    def next_error(self):
        result, error = self.answers.get(timeout=20)
        assert result is None, result.get_response()
        return str(error)

    def expect_nothing(self, seconds=0.2):
        try:
            raise AssertionError(self.answers.get(timeout=seconds))
        except queue.Empty:
            pass


def is_final(result):
    return result.get_response().parameters["triton_final_response"].bool_param


def check_repeat_answers_once_for_each_element():
    with Stream() as stream:
        stream.repeat([5, -6, 7], request_id="r")
        for index, value in enumerate([5, -6, 7]):
            result = stream.next()
            assert (result.as_numpy("OUT")[0], result.as_numpy("IDX")[0]) == (value, index), result.get_response()
            assert result.get_response().id == "r" and not is_final(result)
        stream.expect_nothing()


def check_square_answers_n_times():
    with Stream() as stream:
        for count in (3, 0, 1):
            stream.send("square", [tensor("IN", np.array([count], np.int32))], request_id=str(count))
        answers = [stream.next() for _ in range(4)]
        assert sorted(int(a.as_numpy("OUT")[0]) for a in answers) == [1, 3, 3, 3]
        stream.expect_nothing()


def check_answers_come_when_they_are_there():
    with Stream() as stream:
        start = time.monotonic()
        stream.repeat([1, 2, 3], delay_ms=200)
        at = []
        for _ in range(3):
            stream.next()
            at.append(time.monotonic() - start)
        assert at[0] < 0.5 and at[2] - at[0] > 0.3, at


def check_empty_final_response():
    with Stream() as stream:
        for values in ([1, 2], []):
            stream.repeat(values, request_id="e", enable_empty_final_response=True)
            for _ in values:
                assert not is_final(stream.next())
            last = stream.next()
            response = last.get_response()
            assert is_final(last) and len(response.outputs) == 0, response
            assert (response.id, response.model_name) == ("e", "repeat"), response
        # An ordinary answer is itself the final one.
        stream.send("quick", [tensor("INPUT0", np.ones((1, 1), np.float32))], enable_empty_final_response=True)
        only = stream.next()
        assert is_final(only) and len(only.get_response().outputs) == 1
        stream.expect_nothing()


def check_many_decoupled_requests_in_flight():
    with Stream() as stream:
        for request in range(50):
            stream.repeat(range(request, request + 20), request_id=str(request))
        seen = {}
        for _ in range(50 * 20):
            result = stream.next()
            seen.setdefault(int(result.get_response().id), []).append(int(result.as_numpy("OUT")[0]))
        assert seen == {request: list(range(request, request + 20)) for request in range(50)}
        stream.expect_nothing()


def check_decoupled_answers_interleave():
    with Stream() as stream:
        for request in ("a", "b"):
            stream.repeat(range(5), delay_ms=100, request_id=request)
        ids = [stream.next().get_response().id for _ in range(10)]
        assert set(ids[:5]) == {"a", "b"}, ids


def check_decoupled_models_do_not_wait_for_ordinary_ones():
    with Stream() as stream:
        stream.echo("late", 1)
        stream.repeat([9], request_id="repeat")
        assert [stream.next().get_response().id for _ in range(2)] == ["repeat", "1"]


def check_ordinary_answers_keep_their_order():
    with Stream() as stream:
        for number in range(200):
            stream.echo("quick", number)
        for number in range(200):
            result = stream.next()
            assert result.get_response().id == str(number) and result.as_numpy("OUTPUT0")[0][0] == number
        stream.echo("late", 1)
        stream.echo("quick", 2)
        start = time.monotonic()
        assert [stream.next().get_response().id for _ in range(2)] == ["1", "2"]
        assert time.monotonic() - start > 0.2


def check_errors_do_not_end_the_stream():
    with Stream() as stream:
        one = tensor("INPUT0", np.ones((1, 1), np.float32))
        stream.send("no_such", [one])
        assert "Request for unknown model: 'no_such' is not found" in stream.next_error()
        stream.send("quick", [tensor("INPUT0", np.ones((1, 1), np.int32))])
        assert "inference input 'INPUT0' data-type is 'INT32', but model 'quick' expects 'FP32'" in stream.next_error()
        stream.send("quick", [one], outputs=[triton.InferRequestedOutput("NOPE")])
        assert "unexpected inference output 'NOPE' for model 'quick'" in stream.next_error()
        stream.echo("quick", 4)
        assert stream.next().get_response().id == "4"


def check_an_error_of_a_decoupled_model_is_one_of_its_answers():
    with Stream() as stream:
        stream.send("py_repeat", [tensor("IN", np.array([1, -999, 3], np.int32))], enable_empty_final_response=True)
        assert stream.next().as_numpy("OUT")[0] == 1
        assert "bad element at 1" in stream.next_error()
        assert stream.next().as_numpy("OUT")[0] == 3
        assert is_final(stream.next())
        stream.send("py_repeat", [tensor("IN", np.array([8], np.int32))])
        assert stream.next().as_numpy("OUT")[0] == 8


def check_python_model_streams():
    with Stream() as stream:
        delay = tensor("DELAY", np.array([100], np.int32))
        stream.send("py_repeat", [tensor("IN", np.arange(5, dtype=np.int32)), delay])
        start = time.monotonic()
        assert [stream.next().as_numpy("IDX")[0] for _ in range(5)] == list(range(5))
        assert time.monotonic() - start > 0.3


def check_large_messages_both_ways():
    with Stream() as stream:
        value = np.random.default_rng(3).random((1, 1_000_003), np.float32)
        for _ in range(5):
            stream.send("quick", [tensor("INPUT0", value)])
        for _ in range(5):
            np.testing.assert_array_equal(stream.next().as_numpy("OUTPUT0"), value)


def check_tensors_in_shared_memory():
    value = np.arange(8, dtype=np.float32).reshape(1, 8)
    size = value.nbytes
    key = f"/nereid-test-{os.getpid()}-stream"
    region = shm.create_shared_memory_region("stream", key, 2 * size)
    with Stream() as stream:
        stream.client.register_system_shared_memory("stream", key, 2 * size)
        given = triton.InferInput("INPUT0", [1, 8], "FP32")
        given.set_shared_memory("stream", size)
        wanted = triton.InferRequestedOutput("OUTPUT0")
        wanted.set_shared_memory("stream", size, offset=size)
        for factor in (1, 2):
            shm.set_shared_memory_region(region, [value * factor])
            stream.send("quick", [given], outputs=[wanted])
            assert list(stream.next().get_response().raw_output_contents) == [b""]
            got = shm.get_contents_as_numpy(region, np.float32, [1, 8], offset=size)
            np.testing.assert_array_equal(got, value * factor)
        stream.client.unregister_system_shared_memory("stream")
    shm.destroy_shared_memory_region(region)


def check_compressed_stream():
    for algorithm in ("gzip", "deflate"):
        with Stream(compression_algorithm=algorithm) as stream:
            stream.repeat([1, 2])
            assert [stream.next().as_numpy("OUT")[0] for _ in range(2)] == [1, 2]


def check_stop_stream_waits_for_the_answers():
    stream = Stream()
    with stream:
        stream.repeat(range(5), delay_ms=50)
    assert stream.answers.qsize() == 5, stream.answers.qsize()


def check_stop_stream_with_cancel_ends_the_work():
    for model, start in (("repeat", lambda stream: stream.repeat(range(1000), delay_ms=100)),
                         ("endless", lambda stream: stream.echo("endless", 1))):
        with Stream() as other:
            before = counts(other.client, model)
            stream = Stream().__enter__()
            start(stream)
            time.sleep(0.35)
            stopped = time.monotonic()
            stream.client.stop_stream(cancel_requests=True)
            assert time.monotonic() - stopped < 2
            answers = [stream.answers.get(timeout=5) for _ in range(stream.answers.qsize())]
            assert "CANCELLED" in str(answers[-1][1].status()), answers[-1]
            wait_until(lambda: sum(counts(other.client, model)) == sum(before) + 1, f"{model} is done")


def check_a_cancelled_python_model_is_told():
    with Stream() as other:
        stream = Stream().__enter__()
        stream.send("py_repeat", [tensor("IN", np.zeros(600, np.int32)), tensor("DELAY", np.array([100], np.int32))])
        stream.next()
        stream.client.stop_stream(cancel_requests=True)
        # Its only instance would be busy for a minute.
        other.send("py_repeat", [tensor("IN", np.array([5], np.int32))])
        assert other.next().as_numpy("OUT")[0] == 5


def check_deadline_of_a_stream():
    stream = Stream(stream_timeout=0.5)
    with stream:
        stream.echo("endless", 1)
        _, error = stream.answers.get(timeout=5)
        assert error.status() == "StatusCode.DEADLINE_EXCEEDED", error
    with Stream() as other:
        other.echo("quick", 1)
        other.next()


def check_fatal_errors_when_asked_for():
    stream = Stream(headers={"triton_grpc_error": "true"})
    with stream:
        stream.send("py_repeat", [tensor("IN", np.array([1, -999, 3], np.int32))])
        assert stream.next().as_numpy("OUT")[0] == 1
        _, error = stream.answers.get(timeout=5)
        # Triton keeps no codes of decoupled Python models.
        assert "bad element at 1" in str(error) and error.status() == "StatusCode.UNKNOWN", error.status()


def check_decoupled_models_need_a_stream():
    client = triton.InferenceServerClient(URL)
    square = lambda: client.infer("square", [tensor("IN", np.array([2], np.int32))])
    raises(square, "ModelInfer RPC doesn't support models with decoupled transaction policy", status="UNIMPLEMENTED")


def check_streams_beside_each_other():
    streams = [Stream().__enter__() for _ in range(8)]
    for index, stream in enumerate(streams):
        stream.repeat([index] * 10)
    for index, stream in enumerate(streams):
        assert [stream.next().as_numpy("OUT")[0] for _ in range(10)] == [index] * 10
        stream.__exit__()


if __name__ == "__main__":
    run_checks(sys.modules[__name__])
