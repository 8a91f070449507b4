"""Entry of the Python host: `python nereid_host [MODEL_FILE]`, with the server's socket on file descriptor 3.

MODEL_FILE is the model.py of a Python-based backend, used for every model of that backend. Without it each
model has its own.
"""
import os
import sys

PYTHON_MIN = (3, 8)

if sys.version_info < PYTHON_MIN:
    sys.exit("Python %d.%d is too old, the Python backend needs 3.8 or newer" % sys.version_info[:2])

# Started by path, the first entry is this directory; models and we ourselves import from the one above.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from nereid_host.host import die_with_parent, run_host  # noqa: E402  (needs the path above)

# A process that a model starts with multiprocessing imports this file under another name.
if __name__ == "__main__":
    run_host(sys.argv[1] if len(sys.argv) > 1 else None)
elif os.environ.get("NEREID_CHILDREN_DIE_WITH_HOST") == "1":
    # Those of an LLM engine hold the memory of the GPU, and must not when the host was killed.
    die_with_parent()
