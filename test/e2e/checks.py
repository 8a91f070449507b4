"""What the gRPC drivers of this folder share: running their checks, and tensors from numpy arrays."""
import asyncio
import inspect
import sys
import time
import traceback

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype


def tensor(name, value, datatype=None):
    out = triton.InferInput(name, list(value.shape), datatype or np_to_triton_dtype(value.dtype))
    out.set_data_from_numpy(value)
    return out


def raises(call, *texts, status=None):
    """The error of a call that must fail with these words, and with this gRPC status."""
    try:
        call()
    except InferenceServerException as error:
        for text in texts:
            assert text in str(error), f"expected {text!r} in {error!s}"
        assert status is None or error.status() == f"StatusCode.{status}", error.status()
        return error
    raise AssertionError(f"no error; expected one with {texts}")


def wait_until(is_true, what, seconds=5):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, f"{what}: not after {seconds} s"
        time.sleep(0.02)


def counts(client, model):
    """Requests of a model so far: (success, fail)."""
    stats = client.get_inference_statistics(model).model_stats[0].inference_stats
    return stats.success.count, stats.fail.count


def run_checks(module, *args):
    """Calls every check_ function of a module with these arguments and ends the process."""
    failures = 0
    for name, check in list(vars(module).items()):
        if not name.startswith("check_"):
            continue
        try:
            result = check(*args)
            if inspect.iscoroutine(result):
                asyncio.run(result)
            print(f"ok {name}")
        except Exception:
            failures += 1
            print(f"not ok {name}\n{traceback.format_exc()}")
    sys.exit(1 if failures else 0)
