"""The parts of the backends `vllm` and `tensorrtllm` that need no engine: files, requests, outputs, metrics, cancels."""
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
from types import SimpleNamespace

import nereid_host
import numpy as np
from nereid_host.adapters import find_adapter, find_model_class, tensorrtllm_model, tensorrtllm_request
from nereid_host.adapters import vllm_metrics, vllm_model, vllm_request
from nereid_host.adapters.engine_thread import EngineThread
from nereid_host.adapters.text_requests import CHILDREN_DIE, add_missing, require_package, resolve_model, scalar_of
from nereid_host.model_config import ModelConfig
from nereid_host.status import StatusError
from nereid_host.tensor import Tensor


class Request:
    """What the adapters read of a received request."""

    def __init__(self, parameters=None, **inputs):
        self._parameters = parameters or {}
        self._inputs = [Tensor(name, array_of(value)) for name, value in inputs.items()]

    def inputs(self):
        return self._inputs

    def parameters(self):
        return json.dumps(self._parameters)


def array_of(value):
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], str):
        return np.array([text.encode() for text in values], np.object_)
    kind = {bool: np.bool_, int: np.int32, float: np.float32}[type(values[0])]
    return np.array(values, kind)


def empty_config(**more):
    return ModelConfig(json.dumps({"name": "m", "max_batch_size": 0, "input": [], "output": [], **more}))


class TableTest(unittest.TestCase):
    def test_engines_stand_in_the_place_of_a_model_file(self):
        self.assertIs(find_model_class("vllm"), vllm_model.VllmModel)
        self.assertIs(find_model_class("tensorrtllm"), tensorrtllm_model.TensorrtLlmModel)
        self.assertIsNone(find_model_class("python"))
        self.assertIsNone(find_adapter("vllm"))

    def test_a_missing_package_is_named_with_the_way_to_get_it(self):
        with self.assertRaisesRegex(StatusError, "the x backend needs no_such_module, .* -m pip install no-such$"):
            require_package("x", "no_such_module", "no-such")
        require_package("x", "json", "json")

    def test_missing_tensors_are_added_and_others_left(self):
        own = {"name": "text_input", "data_type": "TYPE_STRING", "dims": [2]}
        config = empty_config(input=[own])
        add_missing(config, vllm_request.INPUTS, vllm_request.OUTPUTS)
        inputs = {tensor["name"]: tensor for tensor in config.as_dict()["input"]}
        self.assertEqual(inputs["text_input"]["dims"], [2])
        self.assertTrue(inputs["stream"]["optional"])
        self.assertEqual(
            [(tensor["name"], tensor["data_type"], tensor["dims"]) for tensor in config.as_dict()["output"]][:3],
            [
                ("text_output", "TYPE_STRING", [-1]),
                ("finish_reason", "TYPE_STRING", [-1]),
                ("cumulative_logprob", "TYPE_FP32", [-1]),
            ],
        )


class FilesTest(unittest.TestCase):
    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self._temporary.cleanup)
        self.folder = self._temporary.name

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))

    def test_engine_arguments_of_vllm(self):
        want = "'model.json' containing vllm engine args must be provided in '%s'" % self.folder
        with self.assertRaisesRegex(ValueError, want):
            vllm_model.read_engine_args(self.folder)
        os.mkdir(os.path.join(self.folder, "weights"))
        self.write("model.json", {"model": "weights", "disable_log_requests": True})
        want = {"model": os.path.join(self.folder, "weights"), "enable_log_requests": False}
        self.assertEqual(vllm_model.read_engine_args(self.folder), want)
        self.assertEqual(resolve_model("owner/name", self.folder), "owner/name")
        self.assertEqual(resolve_model(None, self.folder), None)

    def test_adapters_are_read_where_the_engine_has_them(self):
        self.assertIsNone(vllm_model.read_loras(self.folder, {"enable_lora": "false"}))
        path = os.path.join(self.folder, "multi_lora.json")
        with self.assertRaisesRegex(FileNotFoundError, "Triton backend cannot find %s\\." % path):
            vllm_model.read_loras(self.folder, {"enable_lora": True})
        self.write("multi_lora.json", {"a": "/x/a", "b": "/x/b"})
        arguments = {"enable_lora": "true"}
        loras = vllm_model.read_loras(self.folder, arguments)
        # vLLM wants the type.
        self.assertIs(arguments["enable_lora"], True)
        self.assertEqual(vllm_model.find_lora(loras, "b"), (2, "/x/b"))
        with self.assertRaisesRegex(vllm_model.LoraError, r"LoRA c is not supported, we currently support \['a', 'b'\]"):
            vllm_model.find_lora(loras, "c")
        with self.assertRaisesRegex(vllm_model.LoraError, "LoRA feature is not enabled."):
            vllm_model.find_lora(None, "a")

    def test_one_gpu_for_an_instance_of_kind_gpu(self):
        args = {"model_instance_kind": "GPU", "model_instance_device_id": "3"}
        self.assertEqual(vllm_model.choose_device({}, args), "3")
        self.assertIsNone(vllm_model.choose_device({"tensor_parallel_size": 8}, {**args, "model_instance_kind": "MODEL"}))
        for size in ({"tensor_parallel_size": 2}, {"pipeline_parallel_size": "2"}):
            with self.assertRaisesRegex(ValueError, "KIND_GPU is currently for single-GPU models, please specify KIND_MODEL"):
                vllm_model.choose_device(size, args)

    def test_engine_arguments_of_tensorrtllm(self):
        read = tensorrtllm_model.read_engine_file
        with self.assertRaisesRegex(ValueError, "'model.yaml' containing TRT-LLM engine args not found in '"):
            read(self.folder)
        self.write("model.json", {"model": "m", "triton_config": {"decoupled": False}})
        self.assertEqual(read(self.folder)["triton_config"], {"decoupled": False})
        self.write("other.json", "[]")
        os.environ["LLM_CONFIG_PATH"] = "other.json"
        self.addCleanup(os.environ.pop, "LLM_CONFIG_PATH")
        with self.assertRaisesRegex(ValueError, "Failed to parse YAML engine config: other.json must hold"):
            read(self.folder)

    def test_gpus_of_several_instances_of_tensorrtllm(self):
        def config(ids=None, count=2):
            parameters = {} if ids is None else {"gpu_device_ids": {"string_value": ids}}
            return {"instance_group": [{"count": count}], "parameters": parameters}

        choose = tensorrtllm_model.choose_gpus
        self.assertEqual(choose(config("0,1;2, 3"), "m_0_1"), ["2", "3"])
        self.assertIsNone(choose(config(count=1), "m_0_0"))
        with self.assertRaisesRegex(ValueError, "gpu_device_ids parameter required when instance count > 1"):
            choose(config(), "m_0_0")
        with self.assertRaisesRegex(ValueError, "gpu_device_ids mismatch: instance 1 >= 1 entries"):
            choose(config("0,1"), "m_0_1")


class VllmRequestTest(unittest.TestCase):
    def test_the_prompt_comes_first_unless_excluded_or_streamed(self):
        read = vllm_request.read_generate
        self.assertTrue(read(Request(text_input="a")).is_input_prepended)
        self.assertFalse(read(Request(text_input="a", stream=True)).is_input_prepended)
        self.assertFalse(read(Request(text_input="a", exclude_input_in_output=True)).is_input_prepended)
        with self.assertRaisesRegex(ValueError, "When streaming, `exclude_input_in_output` = False is not allowed."):
            read(Request(text_input="a", stream=True, exclude_input_in_output=False))

    def test_there_is_exactly_one_prompt(self):
        read = vllm_request.read_generate
        self.assertEqual(read(Request(prompt_token_ids=[5, 6])).token_ids, [5, 6])
        self.assertEqual(read(Request(chat_request='{"messages": []}')).chat, {"messages": []})
        both = [
            Request(),
            Request(text_input="a", chat_request="{}"),
            Request(text_input="a", prompt_token_ids=[1]),
            Request(chat_request="{}", prompt_token_ids=[1]),
            Request(text_input="a", chat_request="{}", prompt_token_ids=[1]),
        ]
        for request in both:
            with self.assertRaisesRegex(ValueError, "exactly one of text_input, chat_request and prompt_token_ids"):
                read(request)

    def test_parameters_come_from_the_tensor_or_from_the_request(self):
        read = vllm_request.read_parameters
        self.assertEqual(read(Request({"n": 2}, sampling_parameters='{"n": 3}')), {"n": 3})
        self.assertEqual(read(Request({"n": 2})), {"n": 2})
        with self.assertRaisesRegex(ValueError, "must be a JSON object"):
            read(Request(sampling_parameters="[]"))

    def test_texts_become_what_the_fields_hold(self):
        hints = {
            "temperature": float,
            "seed": typing.Optional[int],
            "ignore_eos": bool,
            "stop": typing.Union[str, typing.List[str], None],
        }
        given = {"temperature": "0.5", "seed": "7", "ignore_eos": "false", "stop": ["a"], "other": "1", "n": None}
        want = {"temperature": 0.5, "seed": 7, "ignore_eos": False, "stop": ["a"], "other": "1", "n": None}
        self.assertEqual(vllm_request.typed_parameters(given, hints), want)
        self.assertEqual(vllm_request.typed_parameters({"temperature": 0}, hints), {"temperature": 0.0})
        with self.assertRaises(ValueError):
            vllm_request.typed_parameters({"seed": "x"}, hints)

    def test_embedding_requests_of_ours_and_of_triton(self):
        read = vllm_request.read_embed
        self.assertEqual(read('{"input": "a", "dimensions": 4}'), (["a"], 4))
        self.assertEqual(read('{"input": [1, 2], "pooling_params": {"dimensions": [8]}}'), ([[1, 2]], 8))
        self.assertEqual(read('{"input": ["a", [1]]}'), (["a", [1]], None))

    def test_scalars_are_alone(self):
        with self.assertRaisesRegex(ValueError, "Expected a scalar tensor for tensor stream"):
            scalar_of(Request(stream=[True, False]), "stream")


def choice(index, text, token_ids, finish_reason=None, logprobs=None, total=None):
    return SimpleNamespace(
        index=index, text=text, token_ids=token_ids, finish_reason=finish_reason, logprobs=logprobs, cumulative_logprob=total
    )


def output(*choices, prompt="p", finished=False):
    return SimpleNamespace(outputs=list(choices), prompt=prompt, prompt_token_ids=[1, 2], finished=finished)


def plain(tensors):
    decode = lambda item: item.decode() if isinstance(item, bytes) else item  # noqa: E731
    return {tensor.name(): [decode(item) for item in tensor.as_numpy().tolist()] for tensor in tensors}


class VllmOutputsTest(unittest.TestCase):
    flags = {"return_%s" % name: True for name in ("finish_reason", "cumulative_logprob", "num_output_tokens")}

    def test_each_choice_keeps_its_place_and_its_end(self):
        call = vllm_request.read_generate(Request(text_input="p", stream=True, **self.flags))
        outputs = vllm_request.TextOutputs(call, 2, False)
        first = plain(outputs.tensors_of(output(choice(1, "b", [7], total=-1.0))))
        self.assertEqual(first["text_output"], ["", "b"])
        self.assertEqual(first["num_output_tokens"], [0, 1])
        self.assertEqual(first["finish_reason"], ["None", "None"])
        outputs.tensors_of(output(choice(1, "c", [8], "stop", total=-2.0)))
        last = plain(outputs.tensors_of(output(choice(0, "a", [9, 9], "length"), finished=True)))
        self.assertEqual(last["text_output"], ["a", ""])
        self.assertEqual(last["finish_reason"], ["length", "stop"])
        self.assertEqual(last["cumulative_logprob"], [0.0, -2.0])

    def test_the_prompt_is_before_each_whole_text(self):
        call = vllm_request.read_generate(Request(text_input="p", return_num_input_tokens=True))
        got = plain(vllm_request.TextOutputs(call, 2, False).tensors_of(output(choice(0, "a", []), choice(1, "b", []))))
        self.assertEqual(got, {"text_output": ["pa", "pb"], "num_input_tokens": [2]})

    def test_logprobs_in_both_forms(self):
        def one(logprob, rank, text):
            return SimpleNamespace(logprob=logprob, rank=rank, decoded_token=text)

        call = vllm_request.read_generate(Request(text_input="p", return_logprobs=True))
        position = {5: one(-2.0, 3, "é"), 6: one(-0.5, 1, "x")}
        answer = output(choice(0, "é", [5], logprobs=[position]))
        own = plain(vllm_request.TextOutputs(call, 1, False).tensors_of(answer))["logprobs"][0]
        self.assertEqual(json.loads(own)[0]["5"], {"logprob": -2.0, "rank": 3, "decoded_token": "é"})
        entry = json.loads(plain(vllm_request.TextOutputs(call, 1, True).tensors_of(answer))["logprobs"][0])[0]
        self.assertEqual((entry["token"], entry["token_id"], entry["bytes"]), ("é", 5, [195, 169]))
        self.assertEqual([top["token_id"] for top in entry["top"]], [6, 5])
        none = plain(vllm_request.TextOutputs(call, 1, False).tensors_of(output(choice(0, "a", [1]))))
        self.assertEqual(none["logprobs"], ["null"])


class MetricsTest(unittest.TestCase):
    def test_bounds_of_lengths(self):
        self.assertEqual(vllm_metrics.one_two_five(100), [1, 2, 5, 10, 20, 50, 100])
        self.assertEqual(vllm_metrics.one_two_five(30), [1, 2, 5, 10, 20])


class TensorrtLlmRequestTest(unittest.TestCase):
    def test_sampling_parameters_and_their_defaults(self):
        request = Request(text_input="a", sampling_param_max_tokens=4, sampling_param_stop=["x", "y"], streaming=True)
        call = tensorrtllm_request.read_generate(request, True)
        defaults = {"best_of": 1, "exclude_input_from_output": False, "return_perf_metrics": False}
        self.assertEqual(call.sampling, {**defaults, "max_tokens": 4, "stop": ["x", "y"]})
        with self.assertRaisesRegex(ValueError, "Streaming is only supported in decoupled mode."):
            tensorrtllm_request.read_generate(request, False)
        with self.assertRaisesRegex(ValueError, "text_input is missing from the request"):
            tensorrtllm_request.read_generate(Request(), True)

    def test_an_adapter_is_named_whole(self):
        read = tensorrtllm_request.read_lora
        self.assertIsNone(read(Request(text_input="a")))
        with self.assertRaisesRegex(ValueError, "lora_id, lora_name, and lora_path must all be provided together"):
            read(Request(lora_id=1))
        with self.assertRaisesRegex(ValueError, "lora_path does not exist on the Triton server's filesystem: /none"):
            read(Request(lora_id=1, lora_name="a", lora_path="/none"))
        with self.assertRaisesRegex(ValueError, r"lora_ckpt_source must be one of \('hf', 'nemo'\), got 'x'"):
            read(Request(lora_id=1, lora_name="a", lora_path=os.sep, lora_ckpt_source="x"))
        self.assertEqual(read(Request(lora_id=1, lora_name="a", lora_path=os.sep)), (1, "a", os.sep, "hf"))

    def test_a_stream_carries_what_is_new(self):
        perf = SimpleNamespace(kv_cache_metrics=SimpleNamespace(num_reused_blocks=3))
        one = SimpleNamespace(
            text="ab", text_diff="b", finish_reason="stop", stop_reason=None, cumulative_logprob=-1.5, request_perf_metrics=perf
        )
        flags = {"return_finish_reason": True, "return_stop_reason": True, "return_cumulative_logprob": True}
        call = tensorrtllm_request.read_generate(Request(text_input="p", streaming=True, **flags), True)
        got = plain(tensorrtllm_request.tensors_of(call, [one]))
        self.assertEqual((got["text_output"], got["finish_reason"], got["stop_reason"]), (["b"], ["stop"], ["None"]))
        self.assertEqual((got["cumulative_logprob"], got["kv_cache_reused_block"]), ([-1.5], [3]))
        whole = tensorrtllm_request.read_generate(Request(text_input="p"), True)
        self.assertEqual(plain(tensorrtllm_request.tensors_of(whole, [one]))["text_output"], ["ab"])


class EngineThreadTest(unittest.TestCase):
    def test_what_fails_on_the_loop_is_raised_to_the_caller(self):
        async def fail():
            raise ValueError("no engine")

        with self.assertRaisesRegex(ValueError, "no engine"):
            EngineThread("test").call(fail())

    def test_a_cancelled_request_is_aborted_once_and_a_finished_one_never(self):
        engine = EngineThread("test", 0.005)
        cancelled = threading.Event()
        aborted = []
        is_done = threading.Event()

        async def run():
            async def abort(key):
                aborted.append(key)

            engine.watch("a", cancelled.is_set, lambda: abort("a"))
            engine.watch("b", cancelled.is_set, lambda: abort("b"))
            engine.unwatch("b")
            await asyncio.sleep(0.03)
            self.assertEqual(aborted, [])
            cancelled.set()
            await asyncio.sleep(0.05)
            # After the last one is gone the next begins the watch anew.
            engine.watch("c", cancelled.is_set, lambda: abort("c"))
            await asyncio.sleep(0.05)
            is_done.set()

        engine.call(run())
        self.assertTrue(is_done.is_set())
        self.assertEqual(aborted, ["a", "c"])


class ChildProcessTest(unittest.TestCase):
    """Processes that an engine starts import the host's entry under another name."""

    child = "import runpy, time; runpy.run_path(%r, run_name='__mp_main__'); print('alive', flush=True); time.sleep(60)" % (
        os.path.join(os.path.dirname(os.path.abspath(nereid_host.__file__)), "__main__.py")
    )

    def test_they_do_not_become_hosts_and_die_with_their_parent(self):
        # A parent that waits, a child that says its id; the pipe ends when nobody holds it any more.
        parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
        environment = {**os.environ, CHILDREN_DIE: "1"}
        started = subprocess.Popen(
            [sys.executable, "-c", parent, self.child], stdout=subprocess.PIPE, env=environment, text=True
        )
        self.assertEqual(started.stdout.readline(), "alive\n")
        begun = time.monotonic()
        started.kill()
        self.assertEqual(started.stdout.read(), "")
        started.wait()
        started.stdout.close()
        self.assertLess(time.monotonic() - begun, 30)


if __name__ == "__main__":
    unittest.main()
