"""Reads the text of image files through the server.

    python examples/ocr/read.py IMAGE ...

OCR_MODEL names another model than ocr_ensemble: ocr_bls or ocr_bls_js.
"""
import os
import sys

import numpy as np
import tritonclient.http as triton

client = triton.InferenceServerClient(os.environ.get("NEREID_URL", "localhost:8000"))

for path in sys.argv[1:]:
    with open(path, "rb") as image:
        file = triton.InferInput("FILE", [1], "BYTES")
        file.set_data_from_numpy(np.array([image.read()], np.object_))
    result = client.infer(os.environ.get("OCR_MODEL", "ocr_ensemble"), [file])
    print(path)
    for text, score, box in zip(*(result.as_numpy(name) for name in ("TEXT", "SCORE", "BOX"))):
        print(f"  {text.decode()}  ({score:.3f} at {box[0, 0]:.0f}, {box[0, 1]:.0f})")
