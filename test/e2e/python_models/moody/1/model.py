"""Is ready as it was told last: "yes", "no", "wrong" (no boolean), "raise" or "slow"."""
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.mood = "yes"

    def is_ready(self):
        if self.mood == "raise":
            raise ValueError("in a bad mood")
        if self.mood == "slow":
            time.sleep(6)
        return {"yes": True, "no": False, "slow": True}.get(self.mood, 1)

    def execute(self, requests):
        for request in requests:
            self.mood = pb_utils.get_input_tensor_by_name(request, "MOOD").as_numpy()[0].decode()
        output = pb_utils.Tensor("OUT", np.zeros(1, np.int32))
        return [pb_utils.InferenceResponse([output]) for _ in requests]
