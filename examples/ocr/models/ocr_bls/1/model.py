"""The whole pipeline as one Python model: the package as it is, with its networks asked from the server."""
import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from engine import make_engine


def network(model, output):
    """What the package calls for a network: one tensor in, a list of tensors out."""

    def call(tensor):
        request = pb_utils.InferenceRequest(
            model_name=model, requested_output_names=[output], inputs=[pb_utils.Tensor("x", tensor)]
        )
        response = request.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return [pb_utils.get_output_tensor_by_name(response, output).as_numpy()]

    return call


class TritonPythonModel:
    def initialize(self, args):
        self.engine = make_engine()
        self.engine.text_det.infer = network("ocr_detect", "sigmoid_0.tmp_0")
        self.engine.text_cls.infer = network("ocr_orient", "save_infer_model/scale_0.tmp_1")
        self.engine.text_rec.session = network("ocr_recognize", "softmax_11.tmp_0")
        characters = Path(__file__).with_name("characters.txt")
        decode = self.engine.text_rec.postprocess_op
        decode.character = decode.get_character(character_path=characters)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        file = pb_utils.get_input_tensor_by_name(request, "FILE").as_numpy()[0]
        try:
            lines, _ = self.engine(bytes(file))
        except OSError as error:
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError(f"FILE: {error}", pb_utils.TritonError.INVALID_ARG)
            )
        boxes, texts, scores = zip(*lines) if lines else ((), (), ())
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("TEXT", np.array([text.encode() for text in texts], np.object_)),
                pb_utils.Tensor("SCORE", np.array(scores, np.float32)),
                pb_utils.Tensor("BOX", np.array(boxes, np.float32).reshape(-1, 4, 2)),
            ]
        )
