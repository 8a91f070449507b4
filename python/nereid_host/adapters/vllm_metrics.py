"""The numbers of a vLLM engine on the server's metrics port, under the names of Triton's vllm_backend, for a model with
the parameter REPORT_CUSTOM_METRICS. Made by vllm_model.py; vLLM calls `record` after each of its steps."""
from typing import Any, Callable, Dict, List

from nereid_host.metrics import MetricFamily

_TO_FIRST_TOKEN_S = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
_PER_OUTPUT_TOKEN_S = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
_REQUEST_S = [1, 2.5, 5, 10, 15, 20, 30, 40, 50, 60]


def one_two_five(limit: int) -> List[float]:
    """1, 2, 5, 10, … up to the limit."""
    bounds: List[float] = []
    scale = 1
    while scale <= limit:
        bounds += [scale * step for step in (1, 2, 5) if scale * step <= limit]
        scale *= 10
    return bounds


class VllmMetrics:
    def __init__(self, labels: Dict[str, str], max_model_len: int) -> None:
        lengths = one_two_five(max_model_len)
        # A family must be held, or its metrics go away.
        self._families: List[MetricFamily] = []
        self._labels = labels
        self._prompt_tokens = self._counter("prompt_tokens_total", "Number of prefill tokens processed.")
        self._generation_tokens = self._counter("generation_tokens_total", "Number of generation tokens processed.")
        histogram = self._histogram
        self._first_token = histogram(
            "time_to_first_token_seconds", "Histogram of time to first token in seconds.", _TO_FIRST_TOKEN_S
        )
        self._output_token = histogram(
            "time_per_output_token_seconds", "Histogram of time per output token in seconds.", _PER_OUTPUT_TOKEN_S
        )
        self._latency = histogram(
            "e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", _REQUEST_S
        )
        self._request_prompt = histogram("request_prompt_tokens", "Number of prefill tokens processed.", lengths)
        self._request_output = histogram("request_generation_tokens", "Number of generation tokens processed.", lengths)
        self._n = histogram("request_params_n", "Histogram of the n request parameter.", [1, 2, 5, 10, 20])

    def record(self, step: Any) -> None:
        """`step` is an IterationStats of vLLM."""
        for counter, count in (
            (self._prompt_tokens, step.num_prompt_tokens),
            (self._generation_tokens, step.num_generation_tokens),
        ):
            if count:
                counter.increment(count)
        finished = step.finished_requests
        _observe(self._first_token, step.time_to_first_tokens_iter)
        # Renamed between releases of vLLM.
        _observe(self._output_token, getattr(step, "inter_token_latencies_iter", ()))
        _observe(self._latency, [request.e2e_latency for request in finished])
        _observe(self._request_prompt, [request.num_prompt_tokens for request in finished])
        _observe(self._request_output, [request.num_generation_tokens for request in finished])
        _observe(self._n, step.n_params_iter)

    def _counter(self, name: str, description: str) -> Any:
        return self._family(name, description, MetricFamily.COUNTER).Metric(labels=self._labels)

    def _histogram(self, name: str, description: str, bounds: List[float]) -> Any:
        return self._family(name, description, MetricFamily.HISTOGRAM).Metric(labels=self._labels, buckets=bounds)

    def _family(self, name: str, description: str, kind: Any) -> MetricFamily:
        family = MetricFamily(name="vllm:%s" % name, description=description, kind=kind)
        self._families.append(family)
        return family


def _observe(histogram: Any, values: Any) -> None:
    for value in values:
        histogram.observe(value)


def stat_logger_factory(metrics: VllmMetrics) -> Callable[..., Any]:
    """What vLLM takes in `stat_loggers`. Only here is vLLM needed: its loggers have a class of their own."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class Logger(StatLoggerBase):
        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            pass

        def record(self, scheduler_stats: Any = None, iteration_stats: Any = None, *_: Any, **__: Any) -> None:
            if iteration_stats is not None:
                metrics.record(iteration_stats)

        def log_engine_initialized(self) -> None:
            pass

    return lambda vllm_config, engine_index=0: Logger(vllm_config, engine_index)
