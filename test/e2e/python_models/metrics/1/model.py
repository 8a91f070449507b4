"""Metrics of its own; STEP names the function that is run, SEEN is what it saw, as JSON text."""
import gc
import json

import numpy as np
import triton_python_backend_utils as pb_utils

Family = pb_utils.MetricFamily


def refusals(*actions):
    texts = []
    for action in actions:
        try:
            action()
            texts.append("")
        except pb_utils.TritonModelException as error:
            texts.append(str(error))
    return texts


class TritonPythonModel:
    def initialize(self, args):
        self.counts = Family(name="py_requests", description="Requests", kind=Family.COUNTER)
        self.level = Family("py_level", "Level", Family.GAUGE)
        self.sizes = Family("py_sizes", "Sizes", Family.HISTOGRAM)
        self.total = self.counts.Metric(labels={"model": "metrics", "b": "2"})
        self.gauge = self.level.Metric()
        self.size = self.sizes.Metric(buckets=[0.5, 1.5, 10])

    def change(self):
        self.total.increment(1)
        # Made anew it is the same one.
        self.counts.Metric(labels={"b": "2", "model": "metrics"}).increment(2.5)
        self.gauge.set(8)
        self.gauge.increment(-3)
        for value in (0.25, 1.5, 99):
            self.size.observe(value)
        return [self.total.value(), self.gauge.value()]

    def wrong(self):
        return refusals(
            lambda: self.total.increment(-1),
            lambda: self.total.set(1),
            lambda: self.gauge.observe(1),
            lambda: self.size.increment(1),
            self.size.value,
            lambda: Family("py_level", "Level", Family.COUNTER),
            lambda: Family("py level", "Level", Family.COUNTER),
            lambda: self.level.Metric(labels={"a b": "c"}),
            lambda: self.level.Metric(labels=[]),
            lambda: self.level.Metric(buckets=[1]),
            lambda: self.sizes.Metric(),
            lambda: self.sizes.Metric(buckets=(1, 2)),
            lambda: self.sizes.Metric(labels={"a": "b"}, buckets=[2, 1]),
        )

    def delete(self):
        self.level = None
        gc.collect()
        return refusals(self.gauge.value, lambda: self.gauge.set(1))

    def execute(self, requests):
        answers = []
        for request in requests:
            step = request.inputs()[0].as_numpy()[0].decode()
            text = json.dumps(getattr(self, step)())
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", np.array([text], np.object_))]))
        return answers
