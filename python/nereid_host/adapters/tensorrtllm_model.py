"""The backend `tensorrtllm`: model.yaml (or model.json) holds the arguments of TensorRT-LLM's LLM, which batches by
itself. Files, tensors and texts are those of Triton's llmapi model. PythonModel runs it as the model.py of every such
model."""
import asyncio
import json
import os
import re
from typing import Any, Dict, List, Optional, Set

from nereid_host.adapters.engine_thread import EngineThread
from nereid_host.adapters.tensorrtllm_request import INPUTS, OUTPUTS, read_generate, read_lora, tensors_of
from nereid_host.adapters.text_requests import CHILDREN_DIE, add_missing, flag_of, require_package, resolve_model
from nereid_host.answer import RESPONSE_COMPLETE_FINAL
from nereid_host.logger import Logger
from nereid_host.response import InferenceResponse, TritonError
from nereid_host.runtime import runtime

ENGINE_FILES = ("model.yaml", "model.json")
# What is Triton's in the file, and not the engine's.
TRITON_SECTION = "triton_config"
CANCEL_CHECK_MS = 100
_CANCELLED = "Request cancelled by client"
# Of an MPI job that the server was started in; the engine begins its own.
_MPI_JOB = re.compile(r"OMPI_(?:COMM_WORLD_|UNIVERSE_SIZE|FIRST_RANKS|APP_CTX_|MCA_orte_)|PMIX_(?!MCA_)|PMI_|ORTE_")


class TensorrtLlmModel:
    @classmethod
    def auto_complete_config(cls, config: Any) -> Any:
        require_package("tensorrtllm", "tensorrt_llm", "tensorrt-llm")
        settings = read_engine_file(runtime.model_directory).get(TRITON_SECTION) or {}
        add_missing(config, INPUTS, OUTPUTS)
        # Triton's template says false; without a word here streams work.
        config.set_model_transaction_policy({"decoupled": bool(settings.get("decoupled", True))})
        config.set_max_batch_size(int(settings.get("max_batch_size", 0)))
        return config

    def initialize(self, args: Dict[str, str]) -> None:
        require_package("tensorrtllm", "tensorrt_llm", "tensorrt-llm")
        config = json.loads(args["model_config"])
        self._is_decoupled = config.get("model_transaction_policy", {}).get("decoupled", False)
        arguments = read_engine_file(runtime.model_directory)
        settings = arguments.pop(TRITON_SECTION, None) or {}
        arguments["model"] = resolve_model(arguments.get("model"), runtime.model_directory)
        gpus = choose_gpus(config, args["model_instance_name"])
        if gpus is not None:
            # Before the import: CUDA looks at it once.
            os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["TRTLLM_VISIBLE_DEVICES"] = ",".join(gpus)
            arguments["gpus_per_node"] = len(gpus)
        for name in [name for name in os.environ if _MPI_JOB.match(name)]:
            del os.environ[name]
        os.environ[CHILDREN_DIE] = "1"
        check_ms = int(settings.get("cancellation_check_period_ms", CANCEL_CHECK_MS))
        # By the id that clients give; `stop` names it.
        self._running: Dict[str, Set[Any]] = {}
        self._thread = EngineThread("nereid-tensorrtllm", check_ms / 1000)
        self._llm = self._thread.call(self._start(arguments))

    async def _start(self, arguments: Dict[str, Any]) -> Any:
        from tensorrt_llm import LLM
        from tensorrt_llm.llmapi.llm_utils import update_llm_args_with_extra_dict

        complete = update_llm_args_with_extra_dict({}, arguments)
        # It takes minutes, and may want an event loop of its own.
        return await asyncio.get_running_loop().run_in_executor(None, lambda: LLM(**complete))

    def execute(self, requests: List[Any]) -> None:
        for request in requests:
            self._thread.submit(self._answer(request))

    def finalize(self) -> None:
        llm = getattr(self, "_llm", None)
        if llm is not None:
            llm.shutdown()

    async def _answer(self, request: Any) -> None:
        """Answers whatever happens."""
        try:
            if flag_of(request, "stop"):
                self._stop(request)
            else:
                await self._generate(request)
        except Exception as error:
            Logger.log_error("[trtllm] Error generating request: %r" % error)
            _send_error(request, TritonError("Error generating request: %s" % error))

    def _stop(self, request: Any) -> None:
        id = request.request_id()
        if id == "":
            _send_error(request, TritonError("A request id must be provided for request cancellation"))
            return
        for running in self._running.get(id, ()):
            running.abort()
        _send_error(request, TritonError(_CANCELLED, TritonError.CANCELLED))

    async def _generate(self, request: Any) -> None:
        from tensorrt_llm import SamplingParams

        call = read_generate(request, self._is_decoupled)
        lora = _lora_request(request)
        sender = request.get_response_sender()
        running = self._llm.generate_async(
            call.text, SamplingParams(**call.sampling), streaming=call.is_stream, lora_request=lora
        )
        is_aborted = False

        async def abort() -> None:
            nonlocal is_aborted
            is_aborted = True
            running.abort()

        id = request.request_id()
        if id != "":
            self._running.setdefault(id, set()).add(running)
        self._thread.watch(running, sender.is_cancelled, abort)
        try:
            async for output in running:
                if is_aborted:
                    break
                if call.is_stream or output.finished:
                    flags = RESPONSE_COMPLETE_FINAL if output.finished else 0
                    sender.send(InferenceResponse(tensors_of(call, output.outputs)), flags)
                if output.finished:
                    return
        finally:
            self._thread.unwatch(running)
            self._forget(id, running)
        _send_error(request, TritonError(_CANCELLED, TritonError.CANCELLED))

    def _forget(self, id: str, running: Any) -> None:
        same = self._running.get(id)
        if same is not None:
            same.discard(running)
            if not same:
                del self._running[id]


def _lora_request(request: Any) -> Any:
    lora = read_lora(request)
    if lora is None:
        return None
    from tensorrt_llm.executor.request import LoRARequest

    return LoRARequest(
        lora_name=lora.name, lora_int_id=lora.id, lora_path=lora.path, lora_ckpt_source=lora.source
    )


def read_engine_file(folder: str) -> Dict[str, Any]:
    """LLM_CONFIG_PATH names another file, as in Triton."""
    named = os.environ.get("LLM_CONFIG_PATH")
    names = ENGINE_FILES if not named else (named,)
    path = next((found for found in (os.path.join(folder, name) for name in names) if os.path.isfile(found)), None)
    if path is None:
        raise ValueError("'%s' containing TRT-LLM engine args not found in '%s'" % (names[0], folder))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return _parse(path, text)
    except Exception as error:
        raise ValueError("Failed to parse YAML engine config: %s" % error) from None


def _parse(path: str, text: str) -> Dict[str, Any]:
    if path.endswith(".json"):
        content = json.loads(text)
    else:
        # Comes with TensorRT-LLM.
        import yaml

        content = yaml.safe_load(text)
    if not isinstance(content, dict):
        raise ValueError("%s must hold names and values" % os.path.basename(path))
    return content


def choose_gpus(config: Dict[str, Any], instance: str) -> Optional[List[str]]:
    """The GPUs of one of several instances, from the parameter gpu_device_ids ("0,1;2,3"); None for a single one."""
    groups = config.get("instance_group") or [{}]
    if int(groups[0].get("count", 1)) <= 1:
        return None
    text = (config.get("parameters") or {}).get("gpu_device_ids", {}).get("string_value", "")
    if text == "":
        raise ValueError("gpu_device_ids parameter required when instance count > 1")
    found = re.search(r"_(\d+)$", instance)
    index = int(found.group(1)) if found else 0
    parts = text.split(";")
    if index >= len(parts):
        raise ValueError("gpu_device_ids mismatch: instance %d >= %d entries" % (index, len(parts)))
    return [gpu.strip() for gpu in parts[index].split(",") if gpu.strip() != ""]


def _send_error(request: Any, error: TritonError) -> None:
    request.get_response_sender().send(InferenceResponse(error=error), RESPONSE_COMPLETE_FINAL)
