"""Driver of ocr.test.ts: draws images, has them read by the models of examples/ocr and by the package itself.

    ocr.py GRPC_URL HTTP_URL
"""
import concurrent.futures
import functools
import io
import sys

import numpy as np
import tritonclient.grpc as triton
import tritonclient.http
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

from checks import counts, raises, run_checks, tensor

MODELS = ("ocr_ensemble", "ocr_bls", "ocr_bls_js")
STEPS = ("detect_pre", "detect", "detect_post", "orient", "recognize_pre", "recognize", "decode")
SCORE_TOLERANCE = 1e-4
PIXELS_OFF_MAX = 1
PAGE = ("Nereid reads", "a page of text,", "large and small", "turned by a few degrees", "or upside down.")
LIST = ("one", "two three", "four", "five six seven", "eight", "nine, ten, eleven, twelve", "thirteen", "fourteen")


def draw(size, lines):
    """Lines are (text, place, font size, degrees). Text is turned with the paper it is written on."""
    image = Image.new("RGB", size, "white")
    for text, place, font_size, degrees in lines:
        font = ImageFont.load_default(font_size)
        _, _, right, bottom = font.getbbox(text)
        paper = Image.new("L", (int(right) + 8, int(bottom) + 8), 0)
        ImageDraw.Draw(paper).text((4, 4), text, fill=255, font=font)
        paper = paper.rotate(degrees, expand=True, resample=Image.BICUBIC)
        image.paste("black", place, paper)
    return as_file(image)


def as_file(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


@functools.cache
def images():
    return {
        "page": draw(
            (640, 560),
            [
                (PAGE[0], (40, 20), 64, 0),
                (PAGE[1], (60, 130), 40, 0),
                (PAGE[2], (50, 210), 28, 0),
                (PAGE[3], (60, 290), 36, 4),
                (PAGE[4], (80, 440), 44, 180),
            ],
        ),
        # More lines than are read at once, of different widths.
        "list": draw((400, 400), [(text, (20, 8 + 48 * i), 24, 0) for i, text in enumerate(LIST)]),
        # So low that it is made larger, and so wide that it gets a border.
        "strip": draw((280, 28), [("a single line of text on a strip", (8, 0), 17, 0)]),
        "blank": as_file(Image.new("RGB", (320, 320), "white")),
    }


@functools.cache
def read_by_package(image, lines_at_once):
    engine = RapidOCR() if lines_at_once is None else RapidOCR(rec_batch_num=lines_at_once)
    lines, _ = engine(images()[image])
    boxes, texts, scores = zip(*lines) if lines else ((), (), ())
    return texts, np.array(scores), np.reshape(boxes, (-1, 4, 2))


def expected(image, model="ocr_bls"):
    """Lines are read six at once unless the package is told otherwise; the ensemble reads all of an image at once. How wide
    the widest of them is has an influence on the scores of all."""
    return read_by_package(image, 1000 if (image, model) == ("list", "ocr_ensemble") else None)


def read(client, model, file):
    result = client.infer(model, [tensor("FILE", np.array([file], np.object_))])
    texts = [text.decode() for text in result.as_numpy("TEXT")]
    return texts, result.as_numpy("SCORE"), result.as_numpy("BOX")


def compare(image, model, got):
    texts, scores, boxes = got
    expected_texts, expected_scores, expected_boxes = expected(image, model)
    assert tuple(texts) == expected_texts, f"{model} reads {texts} instead of {expected_texts}"
    assert boxes.shape == expected_boxes.shape, (model, boxes.shape, expected_boxes.shape)
    if not texts:
        return
    scores_off = np.abs(scores - expected_scores).max()
    boxes_off = np.abs(boxes - expected_boxes).max()
    assert scores_off < SCORE_TOLERANCE, f"{model}: scores are {scores_off} off"
    assert boxes_off <= PIXELS_OFF_MAX, f"{model}: boxes are {boxes_off} pixels off"
    print(f"{model}, {image}: {len(texts)} lines, scores off by {scores_off:.1e}, boxes by {boxes_off:g}")


def check_a_page_is_read_as_the_package_reads_it(client, _):
    # The drawing is legible: otherwise equal answers would show little.
    assert [text.replace(" ", "") for text in expected("page")[0]] == [line.replace(" ", "") for line in PAGE]
    for model in MODELS:
        compare("page", model, read(client, model, images()["page"]))


def check_more_lines_than_the_package_reads_at_once(client, _):
    assert len(expected("list")[0]) == len(LIST), expected("list")
    for model in MODELS:
        compare("list", model, read(client, model, images()["list"]))


def check_an_image_that_is_resized_and_gets_a_border(client, _):
    assert len(expected("strip")[0]) == 1, expected("strip")
    # It becomes a large picture, and ocr_bls_js takes the same steps as the ensemble.
    for model in ("ocr_ensemble", "ocr_bls"):
        compare("strip", model, read(client, model, images()["strip"]))


def check_an_image_without_text_has_no_lines(client, _):
    for model in MODELS:
        texts, scores, boxes = read(client, model, images()["blank"])
        assert (texts, scores.shape, boxes.shape) == ([], (0,), (0, 4, 2)), (model, texts, scores, boxes)


def check_a_file_that_is_no_image_is_refused(client, _):
    for model in MODELS:
        raises(lambda: read(client, model, b"no image"), "cannot identify image file", status="INVALID_ARGUMENT")


def check_the_http_client_reads_the_same(_, http):
    file = tritonclient.http.InferInput("FILE", [1], "BYTES")
    file.set_data_from_numpy(np.array([images()["page"]], np.object_))
    result = http.infer("ocr_ensemble", [file])
    texts = [text.decode() for text in result.as_numpy("TEXT")]
    compare("page", "ocr_ensemble", (texts, result.as_numpy("SCORE"), result.as_numpy("BOX")))


def check_images_read_at_once_are_not_mixed_up(client, _):
    before = {step: sum(counts(client, f"ocr_{step}")) for step in STEPS}
    jobs = [(image, model) for image in ("page", "list", "blank") for model in MODELS]
    with concurrent.futures.ThreadPoolExecutor(len(jobs) + 1) as pool:
        bad = pool.submit(raises, lambda: read(client, "ocr_ensemble", b"no image"), "cannot identify image file")
        answers = list(pool.map(lambda job: read(client, job[1], images()[job[0]]), jobs))
        bad.result()
    for (image, model), answer in zip(jobs, answers):
        compare(image, model, answer)
    ran = {step: sum(counts(client, f"ocr_{step}")) - before[step] for step in STEPS}
    # For page, list and blank: the ensemble runs each step once, and the first for the bad file. ocr_bls asks only for
    # networks, for directions and texts by six lines. ocr_bls_js asks for texts by six lines, and for nothing more where no
    # text was found.
    assert ran == {
        "detect_pre": 4 + 0 + 3,
        "detect": 3 + 3 + 3,
        "detect_post": 3 + 0 + 3,
        "orient": 3 + (1 + 2) + 2,
        "recognize_pre": 3 + 0 + (1 + 2),
        "recognize": 3 + (1 + 2) + (1 + 2),
        "decode": 3 + 0 + (1 + 2),
    }, ran


if __name__ == "__main__":
    grpc_url, http_url = sys.argv[1:]
    run_checks(
        sys.modules[__name__],
        triton.InferenceServerClient(grpc_url),
        tritonclient.http.InferenceServerClient(http_url),
    )
