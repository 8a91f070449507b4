"""RapidOCR without its networks: the package's own preparation and reading of tensors, with the package's parameters.

The three networks (find text, tell text that is upside down, read a line) are models of the server. The Python models of
this folder import this file; what each needs of the engine is a method of it.
"""
from rapidocr_onnxruntime import RapidOCR
from rapidocr_onnxruntime.ch_ppocr_cls import text_cls
from rapidocr_onnxruntime.ch_ppocr_det import text_detect
from rapidocr_onnxruntime.ch_ppocr_rec import text_recognize


class _NoNetwork:
    """Takes the place of the package's ONNX Runtime session, so that no network is loaded here."""

    def __init__(self, config):
        pass

    def __call__(self, tensor):
        raise NotImplementedError("this network runs in the server")

    def have_key(self):
        return True

    def get_character_list(self):
        return [""]


def make_engine():
    """The package's pipeline. Its networks are engine.text_det.infer, engine.text_cls.infer, engine.text_rec.session."""
    for module in (text_detect, text_cls, text_recognize):
        module.OrtInferSession = _NoNetwork
    return RapidOCR()


def prepare_picture(engine, file):
    """The content of a PNG or JPEG file as BGR pixels in a size and form that detection likes, and how to get back:
    height and width of the image, two ratios, and the border."""
    image = engine.load_img(file)
    picture, ratio_h, ratio_w = engine.preprocess(image)
    picture, record = engine.maybe_add_letterbox(picture, {})
    border = record["padding_1"]
    return picture, [*image.shape[:2], ratio_h, ratio_w, border["top"], border["left"]]


def original_boxes(engine, corners, geometry):
    """Corners in the picture as corners in the image that was sent."""
    raw_h, raw_w, ratio_h, ratio_w, top, left = geometry
    record = {"preprocess": {"ratio_h": ratio_h, "ratio_w": ratio_w}, "padding_1": {"top": top, "left": left}}
    return engine._get_origin_points(corners, record, raw_h, raw_w)
