"""Sleeps for MS unless its client goes away; below zero it raises, above 100000 it dies."""
import os
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        array = request.inputs()[0].as_numpy()
        sleep_ms = int(array[0])
        if sleep_ms < 0:
            raise ValueError("negative")
        if sleep_ms > 100000:
            os._exit(5)
        end = time.monotonic() + sleep_ms / 1000
        while time.monotonic() < end and not request.is_cancelled():
            time.sleep(0.005)
        pb_utils.Logger.log_info("slept, %s" % ("cancelled" if request.is_cancelled() else "to the end"))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)])]
