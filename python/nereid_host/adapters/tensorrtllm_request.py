"""Requests to the backend `tensorrtllm`: inputs to what TensorRT-LLM's LLM is asked, its outputs to tensors. Names and
rules are those of Triton's llmapi model. Pure, and without TensorRT-LLM; tensorrtllm_model.py calls it."""
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from nereid_host.adapters.text_requests import (
    flag_of,
    scalar_of,
    tensor_spec,
    text_of_element,
    text_tensor,
    values_of,
)
from nereid_host.tensor import Tensor

# Name of the sampling parameter, and the type of its input.
_SAMPLING = {
    "best_of": "TYPE_INT32",
    "temperature": "TYPE_FP32",
    "top_k": "TYPE_INT32",
    "top_p": "TYPE_FP32",
    "frequency_penalty": "TYPE_FP32",
    "presence_penalty": "TYPE_FP32",
    "max_tokens": "TYPE_INT32",
    "seed": "TYPE_UINT64",
    "exclude_input_from_output": "TYPE_BOOL",
    "return_perf_metrics": "TYPE_BOOL",
}
_SAMPLING_DEFAULTS = {"best_of": 1, "exclude_input_from_output": False, "return_perf_metrics": False}
_FLAGS = ("finish_reason", "stop_reason", "cumulative_logprob")

# Output, its type, and where in the request's metrics of TensorRT-LLM the number is.
_PERF = (
    ("kv_cache_reused_block", "TYPE_INT32", "kv_cache_metrics.num_reused_blocks"),
    ("kv_cache_missed_block", "TYPE_INT32", "kv_cache_metrics.num_missed_blocks"),
    ("kv_cache_alloc_new_blocks", "TYPE_INT32", "kv_cache_metrics.num_new_allocated_blocks"),
    ("kv_cache_alloc_total_blocks", "TYPE_INT32", "kv_cache_metrics.num_total_allocated_blocks"),
    ("kv_cache_hit_rate", "TYPE_FP32", "kv_cache_metrics.kv_cache_hit_rate"),
    ("arrival_time_ns", "TYPE_INT64", "timing_metrics.arrival_time"),
    ("first_scheduled_time_ns", "TYPE_INT64", "timing_metrics.first_scheduled_time"),
    ("first_token_time_ns", "TYPE_INT64", "timing_metrics.first_token_time"),
    ("last_token_time_ns", "TYPE_INT64", "timing_metrics.last_token_time"),
    ("acceptance_rate", "TYPE_FP32", "speculative_decoding.acceptance_rate"),
    ("total_accepted_draft_tokens", "TYPE_INT32", "speculative_decoding.total_accepted_draft_tokens"),
    ("total_draft_tokens", "TYPE_INT32", "speculative_decoding.total_draft_tokens"),
)
_NUMPY = {"TYPE_INT32": np.int32, "TYPE_INT64": np.int64, "TYPE_FP32": np.float32}

INPUTS = [
    tensor_spec("text_input", "TYPE_STRING", [-1]),
    tensor_spec("streaming", "TYPE_BOOL", [1], True),
    *[tensor_spec("sampling_param_%s" % name, kind, [1], True) for name, kind in _SAMPLING.items()],
    tensor_spec("sampling_param_stop", "TYPE_STRING", [-1], True),
    *[tensor_spec("return_%s" % name, "TYPE_BOOL", [1], True) for name in _FLAGS],
    tensor_spec("stop", "TYPE_BOOL", [1], True),
    tensor_spec("lora_id", "TYPE_UINT64", [1], True),
    tensor_spec("lora_name", "TYPE_STRING", [1], True),
    tensor_spec("lora_path", "TYPE_STRING", [1], True),
    tensor_spec("lora_ckpt_source", "TYPE_STRING", [1], True),
]
OUTPUTS = [
    tensor_spec("text_output", "TYPE_STRING", [-1]),
    tensor_spec("finish_reason", "TYPE_STRING", [-1]),
    tensor_spec("stop_reason", "TYPE_STRING", [-1]),
    tensor_spec("cumulative_logprob", "TYPE_FP32", [-1]),
    *[tensor_spec(name, kind, [-1] if name.startswith("kv_") else [1]) for name, kind, _ in _PERF],
]


class GenerateCall(NamedTuple):
    text: str
    is_stream: bool
    sampling: Dict[str, Any]
    # Names of outputs beside text_output.
    extra_outputs: List[str]


class LoraCall(NamedTuple):
    id: int
    name: str
    path: str
    source: str


def read_generate(request: Any, is_decoupled: bool) -> GenerateCall:
    texts = values_of(request, "text_input")
    if texts is None or texts.size == 0:
        raise ValueError("text_input is missing from the request")
    is_stream = flag_of(request, "streaming")
    if is_stream and not is_decoupled:
        raise ValueError("Streaming is only supported in decoupled mode.")
    sampling = dict(_SAMPLING_DEFAULTS)
    for name in _SAMPLING:
        value = scalar_of(request, "sampling_param_%s" % name)
        if value is not None:
            sampling[name] = value
    stops = values_of(request, "sampling_param_stop")
    if stops is not None:
        sampling["stop"] = [text_of_element(stop) for stop in stops]
    extra_outputs = [name for name in _FLAGS if flag_of(request, "return_%s" % name)]
    return GenerateCall(text_of_element(texts[0]), is_stream, sampling, extra_outputs)


def read_lora(request: Any) -> Optional[LoraCall]:
    parts = [scalar_of(request, "lora_%s" % part) for part in ("id", "name", "path")]
    if parts.count(None) == len(parts):
        return None
    if None in parts:
        raise ValueError("lora_id, lora_name, and lora_path must all be provided together")
    source = scalar_of(request, "lora_ckpt_source") or "hf"
    if source not in ("hf", "nemo"):
        raise ValueError("lora_ckpt_source must be one of ('hf', 'nemo'), got %r" % source)
    if not os.path.exists(parts[2]):
        raise ValueError("lora_path does not exist on the Triton server's filesystem: %s" % parts[2])
    return LoraCall(int(parts[0]), parts[1], parts[2], source)


def tensors_of(call: GenerateCall, outputs: Sequence[Any]) -> List[Tensor]:
    """`outputs` are the CompletionOutputs of TensorRT-LLM. A stream carries what is new, else the whole text."""
    texts = [output.text_diff if call.is_stream else output.text for output in outputs]
    tensors = [text_tensor("text_output", texts)]
    for name in call.extra_outputs:
        values = [getattr(output, name) for output in outputs]
        if name == "cumulative_logprob":
            numbers = [float("nan") if value is None else value for value in values]
            tensors.append(Tensor(name, np.array(numbers, np.float32)))
        else:
            tensors.append(text_tensor(name, [str(value) for value in values]))
    metrics = getattr(outputs[0], "request_perf_metrics", None)
    if metrics:
        for name, kind, path in _PERF:
            tensors.append(Tensor(name, np.array([_number(metrics, path)], _NUMPY[kind])))
    return tensors


def _number(metrics: Any, path: str) -> Any:
    value = metrics
    for part in path.split("."):
        value = getattr(value, part, 0)
    # Points in time are durations since the start of a clock.
    return value.total_seconds() * 1e9 if hasattr(value, "total_seconds") else value
