"""Takes the three networks and the list of characters out of the installed package rapidocr-onnxruntime and puts them into
the model repository beside this file, or into the one that is named.

    python -m pip install rapidocr-onnxruntime
    python examples/ocr/get_models.py [MODEL_REPOSITORY]
"""
import importlib.util
import shutil
import sys
from pathlib import Path

import onnxruntime

NETWORKS = {
    "ocr_detect": "ch_PP-OCRv4_det_infer.onnx",
    "ocr_orient": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "ocr_recognize": "ch_PP-OCRv4_rec_infer.onnx",
}
REPOSITORY = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "models"
PACKAGE = Path(importlib.util.find_spec("rapidocr_onnxruntime").origin).parent

for model, name in NETWORKS.items():
    target = REPOSITORY / model / "1" / "model.onnx"
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(PACKAGE / "models" / name, target)
    print(target)

# The characters are in the metadata of the network that reads lines, one per row of its answer.
session = onnxruntime.InferenceSession(REPOSITORY / "ocr_recognize" / "1" / "model.onnx")
characters = session.get_modelmeta().custom_metadata_map["character"].splitlines()
for model in ("ocr_decode", "ocr_bls"):
    target = REPOSITORY / model / "1" / "characters.txt"
    target.write_text("\n".join(characters), encoding="utf-8")
    print(target)
