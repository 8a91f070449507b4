"""The backend `vllm`: model.json holds the arguments of vLLM's engine, which batches by itself. Files, tensors,
parameters and texts are those of Triton's vllm_backend. PythonModel runs it as the model.py of every such model."""
import asyncio
import base64
import io
import json
import os
import typing
import uuid
from typing import Any, Dict, List, Optional

import numpy as np

from nereid_host.adapters.engine_thread import EngineThread
from nereid_host.adapters.text_requests import (
    CHILDREN_DIE,
    add_missing,
    flag_of,
    is_true,
    require_package,
    resolve_model,
    scalar_of,
    text_tensor,
)
from nereid_host.adapters.vllm_metrics import VllmMetrics, stat_logger_factory
from nereid_host.adapters.vllm_request import (
    INPUTS,
    OUTPUTS,
    GenerateCall,
    TextOutputs,
    read_embed,
    read_generate,
    read_parameters,
    typed_parameters,
)
from nereid_host.answer import RESPONSE_COMPLETE_FINAL
from nereid_host.logger import Logger
from nereid_host.model_control import unload_model
from nereid_host.response import InferenceResponse, TritonError
from nereid_host.runtime import runtime
from nereid_host.tensor import Tensor

ENGINE_FILE = "model.json"
LORA_FILE = "multi_lora.json"
# After the engine's death: time for the errors of the requests that it had to leave.
EXIT_AFTER_S = 0.5


class VllmModel:
    @classmethod
    def auto_complete_config(cls, config: Any) -> Any:
        require_package("vllm", "vllm", "vllm")
        add_missing(config, INPUTS, OUTPUTS)
        config.set_model_transaction_policy({"decoupled": True})
        # The engine batches.
        config.set_max_batch_size(0)
        return config

    def initialize(self, args: Dict[str, str]) -> None:
        require_package("vllm", "vllm", "vllm")
        self._name = args["model_name"]
        self._config = json.loads(args["model_config"])
        if not self._config.get("model_transaction_policy", {}).get("decoupled", False):
            raise ValueError("vLLM Triton backend must be configured to use decoupled model transaction policy")
        self._is_health_checked = is_true(self._config, "ENABLE_VLLM_HEALTH_CHECK")
        self._is_healthy = True
        folder = runtime.model_directory
        engine_args = read_engine_args(folder)
        device = choose_device(engine_args, args)
        if device is not None:
            Logger.log_info(
                "Detected KIND_GPU model instance, explicitly setting GPU device=%s for %s_%s"
                % (device, self._name, device)
            )
            os.environ["CUDA_VISIBLE_DEVICES"] = device
        self._loras = read_loras(folder, engine_args)
        # A forked process would share the server's socket, and CUDA does not survive a fork.
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
        os.environ[CHILDREN_DIE] = "1"
        self._start_engine(engine_args, {"model": self._name, "version": args["model_version"]})

    def _start_engine(self, engine_args: Dict[str, Any], labels: Dict[str, str]) -> None:
        from vllm import SamplingParams
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self._parameter_types = typing.get_type_hints(SamplingParams)
        arguments = AsyncEngineArgs(**engine_args)
        config = arguments.create_engine_config()
        is_logged = not arguments.disable_log_stats
        loggers: Optional[List[Any]] = None
        if is_logged and is_true(self._config, "REPORT_CUSTOM_METRICS"):
            loggers = [stat_logger_factory(VllmMetrics(labels, config.model_config.max_model_len))]

        async def start() -> Any:
            return AsyncLLM.from_vllm_config(config, stat_loggers=loggers, disable_log_stats=not is_logged)

        self._thread = EngineThread("nereid-vllm")
        self._engine = self._thread.call(start())
        self._tasks = self._thread.call(self._engine.get_supported_tasks())

    def is_ready(self) -> bool:
        return self._is_healthy and not self._engine.errored

    def execute(self, requests: List[Any]) -> None:
        if self._is_health_checked and not self._check_health():
            for request in requests:
                text = "Model is unavailable due to unhealthy vLLM engine"
                _send_error(request, TritonError(text, TritonError.UNAVAILABLE))
            return
        for request in requests:
            self._thread.submit(self._answer(request))

    def finalize(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None:
            engine.shutdown()

    def _check_health(self) -> bool:
        try:
            self._thread.call(self._engine.check_health())
        except Exception as error:
            Logger.log_error("[vllm] Engine is not healthy and model will be unloaded: %s" % error)
            self._is_healthy = False
            unload_model(self._name)
        return self._is_healthy

    async def _answer(self, request: Any) -> None:
        """Answers whatever happens."""
        try:
            embedding = scalar_of(request, "embedding_request")
            task = "generate" if embedding is None else "embed"
            if task not in self._tasks:
                raise ValueError("Model %s does not support '%s' request" % (self._name, task))
            if embedding is None:
                await self._generate(request)
            else:
                await self._embed(request, embedding)
        except LoraError as error:
            Logger.log_info("[vllm] %s" % error)
            _send_error(request, TritonError(str(error)))
        except Exception as error:
            Logger.log_error("[vllm] Error generating stream: %r" % error)
            _send_error(request, TritonError("Error generating stream: %s" % error))
            self._end_if_dead()

    async def _generate(self, request: Any) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        parameters = read_parameters(request)
        lora = self._lora_request(parameters.pop("lora_name", None))
        priority = int(parameters.pop("priority", 0))
        is_openai = parameters.pop("logprobs_format", None) == "openai"
        structure = parameters.pop("structured_outputs", None)
        call = read_generate(request)
        typed = typed_parameters(parameters, self._parameter_types)
        typed["output_kind"] = RequestOutputKind.DELTA if call.is_stream else RequestOutputKind.FINAL_ONLY
        if structure is not None:
            fields = json.loads(structure) if isinstance(structure, str) else structure
            typed["structured_outputs"] = StructuredOutputsParams(**fields)
        sampling = SamplingParams(**typed)
        outputs = TextOutputs(call, sampling.n, is_openai)
        request_id = uuid.uuid4().hex
        sender = request.get_response_sender()
        is_aborted = False

        async def abort() -> None:
            nonlocal is_aborted
            is_aborted = True
            await self._engine.abort(request_id)

        self._thread.watch(request_id, sender.is_cancelled, abort)
        try:
            prompt = self._prompt_of(call)
            stream = self._engine.generate(prompt, sampling, request_id, lora_request=lora, priority=priority)
            async for output in stream:
                if is_aborted or sender.is_cancelled():
                    break
                flags = RESPONSE_COMPLETE_FINAL if output.finished else 0
                sender.send(InferenceResponse(outputs.tensors_of(output)), flags)
                if output.finished:
                    return
        finally:
            self._thread.unwatch(request_id)
        if not is_aborted:
            await self._engine.abort(request_id)
        _send_error(request, TritonError("Request was cancelled", TritonError.CANCELLED))

    def _prompt_of(self, call: GenerateCall) -> Any:
        if call.token_ids is not None:
            return {"prompt_token_ids": call.token_ids}
        text = call.text
        if call.chat is not None:
            text = render_chat(self._engine.get_tokenizer(), call.chat)
        if not call.images:
            return text
        from PIL import Image

        images = [Image.open(io.BytesIO(base64.b64decode(image))).convert("RGB") for image in call.images]
        return {"prompt": text, "multi_modal_data": {"image": images}}

    async def _embed(self, request: Any, text: str) -> None:
        from vllm import PoolingParams

        call = read_embed(text)
        vectors: List[List[float]] = []
        token_count = 0
        for given in call.inputs:
            prompt = given if isinstance(given, str) else {"prompt_token_ids": given}
            pooling = PoolingParams(task="embed", dimensions=call.dimensions)
            async for output in self._engine.encode(prompt, pooling, uuid.uuid4().hex):
                if output.finished:
                    vectors.append([float(value) for value in output.outputs.data])
                    token_count += len(output.prompt_token_ids)
        body = json.dumps({"embeddings": vectors, "prompt_tokens": token_count})
        tensors = [text_tensor("text_output", [body])]
        if flag_of(request, "return_num_input_tokens"):
            tensors.append(Tensor("num_input_tokens", np.array([token_count], np.uint32)))
        if flag_of(request, "return_num_output_tokens"):
            tensors.append(Tensor("num_output_tokens", np.array([0], np.uint32)))
        request.get_response_sender().send(InferenceResponse(tensors), RESPONSE_COMPLETE_FINAL)

    def _lora_request(self, name: Optional[str]) -> Any:
        if name is None:
            return None
        number, path = find_lora(self._loras, name)
        from vllm.lora.request import LoRARequest

        return LoRARequest(name, number, path)

    def _end_if_dead(self) -> None:
        """An engine that died does not come back; the server starts a host that ended anew. With the health check the
        model is unloaded instead, as in Triton."""
        if self._engine.errored and not self._is_health_checked:
            Logger.log_error("[vllm] The engine has died; the host ends and is started anew")
            asyncio.get_running_loop().call_later(EXIT_AFTER_S, os._exit, 1)


class LoraError(Exception):
    """About the adapter that a request names; its text stands alone in the answer."""


def find_lora(loras: Optional[Dict[str, str]], name: str) -> Any:
    """The number and the path of an adapter."""
    if loras is None:
        raise LoraError("LoRA feature is not enabled.")
    names = list(loras)
    if name not in loras:
        raise LoraError("LoRA %s is not supported, we currently support %s" % (name, names))
    return names.index(name) + 1, loras[name]


def read_engine_args(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, ENGINE_FILE)
    if not os.path.isfile(path):
        raise ValueError("'%s' containing vllm engine args must be provided in '%s'" % (ENGINE_FILE, folder))
    with open(path, encoding="utf-8") as file:
        engine_args: Dict[str, Any] = json.load(file)
    # Taken out by vLLM 0.10; models written for Triton still have it, and it only quietens the log.
    if "disable_log_requests" in engine_args:
        engine_args["enable_log_requests"] = not engine_args.pop("disable_log_requests")
    return {**engine_args, "model": resolve_model(engine_args.get("model"), folder)}


def choose_device(engine_args: Dict[str, Any], args: Dict[str, str]) -> Optional[str]:
    """The GPU of an instance of KIND_GPU, as CUDA_VISIBLE_DEVICES wants it; None when the engine chooses."""
    sizes = [int(engine_args.get("%s_parallel_size" % kind, 1)) for kind in ("tensor", "pipeline")]
    if args["model_instance_kind"] != "GPU":
        return None
    if sizes[0] * sizes[1] > 1:
        raise ValueError(
            "KIND_GPU is currently for single-GPU models, please specify KIND_MODEL "
            "in the model's config.pbtxt for multi-GPU models"
        )
    device = int(args["model_instance_device_id"])
    return str(device) if device >= 0 else None


def read_loras(folder: str, engine_args: Dict[str, Any]) -> Optional[Dict[str, str]]:
    """Name to path; None when the engine has no adapters."""
    if str(engine_args.get("enable_lora", "")).lower() != "true":
        return None
    engine_args["enable_lora"] = True
    path = os.path.join(folder, LORA_FILE)
    if not os.path.isfile(path):
        raise FileNotFoundError("Triton backend cannot find %s." % path)
    with open(path, encoding="utf-8") as file:
        loras: Dict[str, str] = json.load(file)
    return {name: resolve_model(place, folder) for name, place in loras.items()}


def render_chat(tokenizer: Any, chat: Dict[str, Any]) -> str:
    """`chat` is the object of chat_request: messages, tools, and further values for the template."""
    return tokenizer.apply_chat_template(
        chat["messages"],
        tools=chat.get("tools"),
        add_generation_prompt=True,
        tokenize=False,
        **(chat.get("chat_template_kwargs") or {}),
    )


def _send_error(request: Any, error: TritonError) -> None:
    sender = request.get_response_sender()
    sender.send(InferenceResponse(error=error), RESPONSE_COMPLETE_FINAL)
