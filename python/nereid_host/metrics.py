"""MetricFamily and Metric: numbers of a model on the server's metrics port.

A family holds its metrics, as in Triton: they stay on the port until the family is garbage collected, also when the model
lets go of a Metric and makes it anew. Changes are told to the server without waiting for an answer; what it would refuse
is refused here, in the same words.
"""
import enum
import json
import threading
from typing import Any, Dict, List, Optional, Tuple

from nereid_host.model_control import request_failure
from nereid_host.model_exception import TritonModelException
from nereid_host.runtime import runtime

_CLEARED = (
    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object should be "
    "deleted AFTER its corresponding 'Metric' objects have been deleted."
)


class MetricKind(enum.IntEnum):
    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


# What each kind can do.
_ACTIONS: Dict[MetricKind, Tuple[str, ...]] = {
    MetricKind.COUNTER: ("increment", "value"),
    MetricKind.GAUGE: ("increment", "set", "value"),
    MetricKind.HISTOGRAM: ("observe",),
}


class _Family:
    """What a family and its metrics share. The metrics do not hold the family, so that its end is noticed."""

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        self.kind = kind
        self.is_cleared = False
        self._wire = {"name": name, "help": description, "type": kind.name.lower()}
        self._lock = threading.Lock()
        # Labels as JSON text, of every metric that was made.
        self._created: Dict[str, Dict[str, str]] = {}

    def ask(self, action: str, labels: Dict[str, str], buckets: Optional[List[float]] = None) -> Any:
        if runtime.calls is None:
            raise TritonModelException("metrics exist only in a model that a server runs")
        try:
            return runtime.calls.ask(self._message(action, labels, 0, buckets))
        except TritonModelException as error:
            raise TritonModelException(request_failure(str(error))) from None

    def tell(self, action: str, labels: Dict[str, str], value: float) -> None:
        runtime.calls.tell(self._message(action, labels, value))

    def create(self, labels: Dict[str, str], buckets: Optional[List[float]]) -> None:
        key = json.dumps(labels, sort_keys=True)
        with self._lock:
            if key not in self._created:
                self.ask("create", labels, buckets)
                self._created[key] = labels

    def delete_all(self) -> None:
        for labels in self._created.values():
            self.tell("delete", labels, 0)
        self._created.clear()

    def _message(
        self, action: str, labels: Dict[str, str], value: float, buckets: Optional[List[float]] = None
    ) -> Dict[str, Any]:
        return {
            "kind": "metric",
            "family": self._wire,
            "labels": labels,
            "buckets": buckets or [],
            "action": action,
            "value": value,
        }


class Metric:
    """Made by MetricFamily.Metric()."""

    def __init__(self, family: _Family, labels: Dict[str, str]) -> None:
        self._family = family
        self._labels = labels

    def increment(self, value: float) -> None:
        self._change("increment", value, "Failed to increment metric value: ")

    def set(self, value: float) -> None:
        self._change("set", value, "Failed to set metric value: ")

    def observe(self, value: float) -> None:
        self._change("observe", value, "Failed to observe metric value: ")

    def value(self) -> float:
        prefix = "Failed to get metric value: "
        self._check("value", prefix)
        try:
            return float(self._family.ask("value", self._labels))
        except TritonModelException as error:
            raise TritonModelException(prefix + str(error)) from None

    def _change(self, action: str, value: float, prefix: str) -> None:
        if isinstance(value, (str, bytes)):
            raise TypeError("%s() takes a number, found %r" % (action, type(value)))
        number = float(value)
        self._check(action, prefix)
        if action == "increment" and self._family.kind == MetricKind.COUNTER and number < 0:
            text = "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
            raise TritonModelException(prefix + request_failure(text))
        if number - number != 0:
            raise TritonModelException(prefix + "the value must be a finite number, found %r" % number)
        self._family.tell(action, self._labels, number)

    def _check(self, action: str, prefix: str) -> None:
        kind = self._family.kind
        if self._family.is_cleared:
            raise TritonModelException(prefix + _CLEARED)
        if action not in _ACTIONS[kind]:
            text = "TRITONSERVER_METRIC_KIND_%s does not support %s" % (kind.name, action.capitalize())
            raise TritonModelException(prefix + request_failure(text))


class MetricFamily:
    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        if not isinstance(name, str) or not isinstance(description, str) or not isinstance(kind, MetricKind):
            raise TypeError(
                "MetricFamily() takes a name, a description and a kind such as MetricFamily.COUNTER, got %r, %r and %r"
                % (type(name), type(description), type(kind))
            )
        family = _Family(name, description, kind)
        try:
            family.ask("declare", {})
        except TritonModelException as error:
            raise TritonModelException("Error when creating MetricFamily: %s" % error) from None
        self._family = family

    def __del__(self) -> None:
        # A family that could not be made has nothing to clear. At any moment and on any thread, so here it is only noted.
        family = getattr(self, "_family", None)
        if family is not None:
            family.is_cleared = True
            runtime.later(family.delete_all)

    def Metric(self, labels: Optional[Dict[str, str]] = None, buckets: Optional[List[float]] = None) -> Metric:
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        kind = self._family.kind
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if buckets is not None and kind != MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        if buckets is None and kind == MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Missing required buckets.")
        own_labels = dict(labels or {})
        for name, value in own_labels.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TritonModelException(
                    "Error when creating Metric: %s" % request_failure("labels must be texts, found %r" % (value,))
                )
        try:
            self._family.create(own_labels, None if buckets is None else [float(bound) for bound in buckets])
        except TritonModelException as error:
            raise TritonModelException("Error when creating Metric: %s" % error) from None
        return Metric(self._family, own_labels)
