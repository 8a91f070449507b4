"""Driver of llama-grpc.test.ts: a llama model through tritonclient.grpc, as the clients of Triton's vLLM backend call it.

    llama_grpc.py URL METRICS_URL     URL serves the llama model smol
"""
import json
import queue
import sys
import urllib.request

import numpy as np
import tritonclient.grpc as triton
from checks import raises, run_checks, tensor, wait_until

URL, METRICS_URL = sys.argv[1:]
PROMPT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
TEXT = "The capital of France is Paris."
SECONDS = 60


def text_tensor(name, text):
    return tensor(name, np.array([text.encode()], object))


def flag(name, value=True):
    return tensor(name, np.array([value]))


def inputs(prompt=PROMPT, stream=True, sampling=None, **flags):
    sampling = {"temperature": 0, **(sampling or {})}
    return [
        text_tensor("text_input", prompt),
        text_tensor("sampling_parameters", json.dumps(sampling)),
        flag("stream", stream),
        *[flag(name, value) for name, value in flags.items()],
    ]


class Stream:
    def __enter__(self):
        self.client = triton.InferenceServerClient(URL)
        self.answers = queue.Queue()
        self.client.start_stream(lambda result, error: self.answers.put((result, error)))
        return self

    def __exit__(self, *_):
        self.client.stop_stream()
        self.client.close()

    def send(self, tensors, **more):
        self.client.async_stream_infer("smol", tensors, **more)

    def next(self):
        return self.answers.get(timeout=SECONDS)

    def all(self):
        """Every answer up to the final one, which may be empty."""
        results = []
        while True:
            result, error = self.next()
            assert error is None, error
            if result.as_numpy("text_output") is not None:
                results.append(result)
            if result.get_response().parameters["triton_final_response"].bool_param:
                return results


def texts(results):
    return [result.as_numpy("text_output")[0].decode() for result in results]


def check_a_stream_of_tokens():
    with Stream() as stream:
        stream.send(inputs(return_finish_reason=True, return_num_input_tokens=True), request_id="r",
                    enable_empty_final_response=True)
        results = stream.all()
        assert "".join(texts(results)) == TEXT, texts(results)
        assert len(results) > 4
        reasons = [result.as_numpy("finish_reason")[0] for result in results]
        assert reasons == [b"None"] * (len(results) - 1) + [b"stop"], reasons
        assert all(result.get_response().id == "r" for result in results)
        assert {int(result.as_numpy("num_input_tokens")[0]) for result in results} == {16}
        assert results[0].as_numpy("num_input_tokens").dtype == np.uint32


def check_one_answer_without_stream():
    with Stream() as stream:
        stream.send(inputs(stream=False, return_num_output_tokens=True), enable_empty_final_response=True)
        (result,) = stream.all()
        assert texts([result]) == [PROMPT + TEXT]
        assert result.as_numpy("num_output_tokens").tolist() == [8]


def check_only_the_outputs_that_are_asked_for():
    with Stream() as stream:
        stream.send(
            inputs(stream=False, return_finish_reason=True, return_logprobs=True),
            outputs=[triton.InferRequestedOutput("text_output"), triton.InferRequestedOutput("finish_reason")],
            enable_empty_final_response=True,
        )
        (result,) = stream.all()
        names = [output.name for output in result.get_response().outputs]
        assert names == ["text_output", "finish_reason"], names


def check_parameters_of_the_request_are_sampling_parameters():
    with Stream() as stream:
        stream.send([text_tensor("text_input", PROMPT), flag("stream", False), flag("exclude_input_in_output")],
                    parameters={"temperature": 0, "max_tokens": 3}, enable_empty_final_response=True)
        assert texts(stream.all()) == ["The capital of"]


def check_several_requests_of_one_stream():
    with Stream() as stream:
        for i in range(4):
            stream.send(inputs(sampling={"max_tokens": 4 + i, "ignore_eos": True}), request_id=str(i),
                        enable_empty_final_response=True)
        counts, ended = [0] * 4, 0
        while ended < 4:
            result, error = stream.next()
            assert error is None, error
            response = result.get_response()
            counts[int(response.id)] += result.as_numpy("text_output") is not None
            ended += response.parameters["triton_final_response"].bool_param
        assert counts == [4, 5, 6, 7], counts


def check_a_wrong_request_fails_and_the_stream_goes_on():
    with Stream() as stream:
        stream.send(inputs(sampling={"heat": 1}))
        result, error = stream.next()
        assert result is None and "unknown sampling parameter 'heat'" in str(error), error
        stream.send(inputs(), enable_empty_final_response=True)
        assert "".join(texts(stream.all())) == TEXT


def check_a_wrong_tensor_is_refused():
    with Stream() as stream:
        stream.send([tensor("text_input", np.array([1], np.int32))])
        result, error = stream.next()
        assert result is None and "text_input" in str(error), error


def check_model_infer_is_refused():
    client = triton.InferenceServerClient(URL)
    raises(lambda: client.infer("smol", inputs()),
           "ModelInfer RPC doesn't support models with decoupled transaction policy", status="UNIMPLEMENTED")


def check_a_cancelled_stream_stops_the_generation():
    client = triton.InferenceServerClient(URL)
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    client.async_stream_infer("smol", inputs(sampling={"max_tokens": 400, "ignore_eos": True}))
    assert answers.get(timeout=SECONDS)[1] is None
    client.stop_stream(cancel_requests=True)
    client.close()

    def is_aborted():
        with urllib.request.urlopen(METRICS_URL) as response:
            return 'nv_llm_requests_finished_total{finished_reason="abort"' in response.read().decode()
    wait_until(is_aborted, "the generation is cancelled", seconds=10)


def check_the_config_is_complete():
    client = triton.InferenceServerClient(URL)
    config = client.get_model_config("smol").config
    assert config.backend == "llama" and config.model_transaction_policy.decoupled
    assert config.max_batch_size == 0
    by_name = {entry.name: entry for entry in config.input}
    assert by_name["text_input"].optional and list(by_name["text_input"].dims) == [1]
    assert {"stream", "sampling_parameters", "exclude_input_in_output", "return_logprobs"} <= set(by_name)
    assert [entry.name for entry in config.output][:2] == ["text_output", "finish_reason"]
    metadata = client.get_model_metadata("smol")
    assert metadata.platform == "" or metadata.platform == "llama", metadata.platform


if __name__ == "__main__":
    run_checks(sys.modules["__main__"])
