"""Counts down: one request, many responses, over a gRPC stream.

    pip install "tritonclient[grpc]"
    python examples/clients/ticker.py 3 2 1
"""
import os
import queue
import sys

import numpy as np
import tritonclient.grpc as triton


def tensor(name, array, datatype):
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def main(numbers):
    answers = queue.Queue()
    client = triton.InferenceServerClient(os.environ.get("NEREID_GRPC_URL", "localhost:8001"))
    client.start_stream(lambda result, error: answers.put((result, error)))
    inputs = [
        tensor("IN", np.array(numbers, np.int32), "INT32"),
        tensor("DELAY", np.full(len(numbers), 300, np.uint32), "UINT32"),
        tensor("WAIT", np.array([0], np.uint32), "UINT32"),
    ]
    client.async_stream_infer("ticker", inputs, enable_empty_final_response=True)
    while True:
        result, error = answers.get()
        if error is not None:
            sys.exit(f"ticker: {error}")
        if result.get_response().parameters["triton_final_response"].bool_param:
            break
        print(result.as_numpy("OUT")[0], flush=True)
    client.stop_stream()


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [3, 2, 1])
