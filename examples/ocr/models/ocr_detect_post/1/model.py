"""The map of the detection network to boxes of text, and the boxes' pixels to what the direction network takes.

CORNERS are places in PICTURE, BOXES the same in the image that was sent. Without any text there is one empty line, since the
networks take no empty batch; the number of boxes says how many there are.
"""
import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from engine import make_engine, original_boxes


class TritonPythonModel:
    def initialize(self, args):
        self.engine = make_engine()

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        picture, geometry, scores = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("PICTURE", "GEOMETRY", "MAP")
        )
        detector = self.engine.text_det
        found, _ = detector.postprocess_op(scores, picture.shape[:2])
        found = detector.filter_tag_det_res(found, picture.shape[:2])
        if len(found) == 0:
            corners = boxes = np.zeros((0, 4, 2), np.float32)
            lines = np.zeros((1, 3, 48, 192), np.float32)
        else:
            corners = np.array(self.engine.sorted_boxes(found), np.float32)
            boxes = original_boxes(self.engine, corners, geometry.tolist())
            crops = self.engine.get_crop_img_list(picture, corners)
            lines = np.stack([self.engine.text_cls.resize_norm_img(crop) for crop in crops])
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("CORNERS", corners),
                pb_utils.Tensor("BOXES", boxes),
                pb_utils.Tensor("LINES", lines),
            ]
        )
