"""A model that only is loaded and unloaded; it counts its loads and tries to call a model when that is too late."""
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily("bls_extra_loads", "Loads", pb_utils.MetricFamily.COUNTER)
        self.family.Metric().increment(1)

    def execute(self, requests):
        return [pb_utils.InferenceResponse() for _ in requests]

    def finalize(self):
        request = pb_utils.InferenceRequest(
            model_name="nobatch", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", np.zeros(1))]
        )
        for late in (request.exec, lambda: pb_utils.load_model("nobatch")):
            try:
                late()
            except pb_utils.TritonModelException as error:
                pb_utils.Logger.log_info("in finalize: %s" % error)
