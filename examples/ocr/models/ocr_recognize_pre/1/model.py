"""Boxes of a picture, upright, to what the recognition network takes: all in one batch, as wide as the widest needs."""
import sys
from pathlib import Path

import cv2
import numpy as np
import triton_python_backend_utils as pb_utils

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from engine import make_engine


class TritonPythonModel:
    def initialize(self, args):
        self.engine = make_engine()

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        picture, corners, directions = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("PICTURE", "CORNERS", "DIRECTIONS")
        )
        reader = self.engine.text_rec
        _, height, width = reader.rec_image_shape
        if len(corners) == 0:
            lines = np.zeros((1, 3, height, width), np.float32)
        else:
            crops = self.engine.get_crop_img_list(picture, corners)
            crops = [self.upright(crop, scores) for crop, scores in zip(crops, directions)]
            ratio_max = max([width / height, *(crop.shape[1] / crop.shape[0] for crop in crops)])
            lines = np.stack([reader.resize_norm_img(crop, ratio_max) for crop in crops])
        return pb_utils.InferenceResponse([pb_utils.Tensor("LINES", lines)])

    def upright(self, crop, scores):
        classifier = self.engine.text_cls
        ((label, score),) = classifier.postprocess_op(scores[np.newaxis])
        is_upside_down = "180" in label and score > classifier.cls_thresh
        return cv2.rotate(crop, cv2.ROTATE_180) if is_upside_down else crop
