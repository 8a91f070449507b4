"""The content of an image file to what the detection network takes."""
import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from engine import make_engine, prepare_picture


class TritonPythonModel:
    def initialize(self, args):
        self.engine = make_engine()

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        file = pb_utils.get_input_tensor_by_name(request, "FILE").as_numpy()[0]
        try:
            picture, geometry = prepare_picture(self.engine, bytes(file))
        except OSError as error:
            # One file that is not an image costs the other requests nothing.
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError(f"FILE: {error}", pb_utils.TritonError.INVALID_ARG)
            )
        detector = self.engine.text_det
        pixels = detector.get_preprocess(max(picture.shape[:2]))(picture)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("PICTURE", picture),
                pb_utils.Tensor("GEOMETRY", np.array(geometry, np.float32)),
                pb_utils.Tensor("PIXELS", pixels),
            ]
        )
