"""Metrics of a model; what the server's page shows of them is looked at after each step."""
import triton_python_backend_utils as pb_utils
from steps import StepModel, raised


def family(name, kind, description="a family"):
    """While a config is completed the module has no MetricFamily yet, so it is looked up late."""
    return pb_utils.MetricFamily(name=name, description=description, kind=getattr(pb_utils.MetricFamily, kind))


class TritonPythonModel(StepModel):
    def initialize(self, args):
        self.counters = family("side_counter", "COUNTER", "a counter")
        self.gauges = family("side_gauge", "GAUGE", "a gauge: é")
        self.counter = self.counters.Metric(labels={"model": "m", "a": "1"})
        self.gauge = self.gauges.Metric(labels={"b": 'quote " and \\'})

    def counts(self, _):
        self.counter.increment(2)
        self.counter.increment(0.5)
        return self.counter.value()

    def gauges_up_and_down(self, _):
        self.gauge.set(10)
        self.gauge.increment(2.5)
        self.gauge.increment(-4)
        return self.gauge.value()

    def same_metric(self, _):
        again = self.counters.Metric(labels={"a": "1", "model": "m"})
        again.increment(1)
        return [again.value(), self.counter.value()]

    def same_family(self, _):
        again = family("side_counter", "COUNTER", "a counter")
        return again.Metric(labels={"model": "m", "a": "1"}).value()

    def without_labels(self, _):
        self.plain = self.gauges.Metric()
        self.plain.set(1e21)
        return self.plain.value()

    def histogram(self, _):
        self.histograms = family("side_histogram", "HISTOGRAM")
        metric = self.histograms.Metric(labels={"h": "1"}, buckets=[0.5, 1, 2.5])
        for value in (0.1, 1, 2, 30):
            metric.observe(value)
        return "observed"

    def kinds(self, _):
        return [int(pb_utils.MetricFamily.COUNTER), int(pb_utils.MetricFamily.GAUGE), type(self.counter).__name__]

    def refused(self, _):
        """Only what the module itself refuses: a refusal of the server ends a real Triton now and then."""
        return [
            raised(pb_utils.MetricFamily, name="side_x", description="x", kind=1),
            raised(pb_utils.MetricFamily, "side_x"),
            raised(self.counter.increment, "x"),
            raised(self.counters.Metric, labels=[1]),
            raised(self.counters.Metric, labels={"h": "2"}, buckets=[1]),
        ]

    def deleted_metric(self, _):
        self.short = family("side_short", "COUNTER")
        metric = self.short.Metric(labels={"x": "y"})
        metric.increment(1)
        del metric
        return "deleted"

    def deleted_family(self, _):
        self.short = None
        return "deleted"

    def metric_without_family(self, _):
        gone = family("side_shorter", "COUNTER")
        metric = gone.Metric(labels={"x": "y"})
        del gone
        return [raised(metric.increment, 1), raised(metric.value)]
