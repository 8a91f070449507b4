"""Models that load and unload others."""
import time

import numpy as np
import triton_python_backend_utils as pb_utils
from steps import StepModel, outcome, raised


def ask_extra():
    inputs = [pb_utils.Tensor("STEP", np.array([b"names"], np.object_))]
    request = pb_utils.InferenceRequest(model_name="other_file", requested_output_names=["SEEN"], inputs=inputs)
    return outcome(request.exec())


def wait_until_gone():
    for _ in range(200):
        response = ask_extra()
        if isinstance(response, dict):
            return response
        time.sleep(0.05)


class TritonPythonModel(StepModel):
    def loads_and_unloads(self, _):
        before = ask_extra()
        loaded = pb_utils.load_model(model_name="other_file")
        during = ask_extra()
        unloaded = pb_utils.unload_model(model_name="other_file")
        return [before, loaded, during, unloaded, wait_until_gone()]

    def loads_with_files(self, _):
        source = b"from steps import StepModel\nclass TritonPythonModel(StepModel):\n    def names(self, _):\n        return 'given'\n"
        steps = open(pb_utils.get_model_dir() + "/steps.py", "rb").read()
        config = """{"backend": "python", "input": [{"name": "STEP", "data_type": "TYPE_STRING", "dims": [1]}],
          "output": [{"name": "SEEN", "data_type": "TYPE_STRING", "dims": [1]}],
          "instance_group": [{"count": 1, "kind": "KIND_CPU"}]}"""
        files = {"file:1/model.py": source, "file:1/steps.py": steps}
        pb_utils.load_model("other_file", config=config, files=files)
        answered = ask_extra()
        pb_utils.unload_model("other_file", unload_dependents=True)
        wait_until_gone()
        return answered

    def readiness(self, _):
        ready = pb_utils.is_model_ready
        return [
            ready("identity"),
            ready(model_name="identity", model_version="1"),
            raised(ready, "identity", "9"),
            raised(ready, "absent"),
            raised(ready, "other_file"),
            raised(ready, "identity", "x"),
            raised(ready),
        ]

    def refused(self, _):
        return [
            raised(pb_utils.load_model, "absent"),
            raised(pb_utils.load_model, "init_model_exception").split("\n")[0],
            raised(pb_utils.load_model, "other_file", config="no json"),
            raised(pb_utils.load_model, "other_file", files={"file:1/model.py": b"x"}),
            raised(pb_utils.load_model, "other_file", files=[1]),
            raised(pb_utils.load_model, ""),
            raised(pb_utils.load_model),
            raised(pb_utils.unload_model, "absent"),
            raised(pb_utils.unload_model),
        ]
