"""Driver of grpc-tls.test.ts: tritonclient.grpc over TLS.

    grpc_tls.py URL MUTUAL_URL FOLDER     both serve the identity model echo; MUTUAL_URL asks for a client certificate;
                                          FOLDER holds ca, client and intruder (.pem and .key), and stranger.pem
"""
import queue
import sys
from pathlib import Path

import grpc
import numpy as np
import tritonclient.grpc as triton
from checks import raises, run_checks, tensor

URL, MUTUAL_URL, FOLDER = sys.argv[1:4]


def connect(url, authority="ca", pair=None):
    at = lambda name: str(Path(FOLDER, name))
    files = {} if pair is None else {"private_key": at(f"{pair}.key"), "certificate_chain": at(f"{pair}.pem")}
    return triton.InferenceServerClient(url, ssl=True, root_certificates=at(f"{authority}.pem"), **files)


def echo(client):
    value = np.random.default_rng(5).random((1, 300_000), np.float32)
    result = client.infer("echo", [tensor("INPUT0", value)], client_timeout=10)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), value)


def stream(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for number in range(20):
        client.async_stream_infer("echo", [tensor("INPUT0", np.full((1, 1), number, np.float32))])
    for number in range(20):
        result, error = answers.get(timeout=10)
        assert error is None and result.as_numpy("OUTPUT0")[0][0] == number, error
    client.stop_stream()


def check_a_client_that_trusts_the_server():
    with connect(URL) as client:
        assert client.is_server_ready()
        echo(client)
        stream(client)


def check_credentials_object():
    credentials = grpc.ssl_channel_credentials(Path(FOLDER, "ca.pem").read_bytes())
    with triton.InferenceServerClient(URL, creds=credentials) as client:
        echo(client)


def check_a_client_that_does_not_trust_the_server():
    with connect(URL, authority="stranger") as client:
        raises(lambda: client.is_server_live(client_timeout=5), status="UNAVAILABLE")


def check_a_client_without_tls():
    for url in (URL, MUTUAL_URL):
        with triton.InferenceServerClient(url) as client:
            raises(lambda: client.is_server_live(client_timeout=5), status="UNAVAILABLE")


def check_a_client_with_a_certificate():
    with connect(MUTUAL_URL, pair="client") as client:
        assert client.is_server_ready()
        echo(client)
        stream(client)


def check_a_client_without_a_certificate_is_refused():
    with connect(MUTUAL_URL) as client:
        raises(lambda: client.is_server_live(client_timeout=5), status="UNAVAILABLE")


def check_a_client_with_a_wrong_certificate_is_refused():
    with connect(MUTUAL_URL, pair="intruder") as client:
        raises(lambda: client.is_server_live(client_timeout=5), status="UNAVAILABLE")
    with connect(MUTUAL_URL, pair="client") as client:
        echo(client)


if __name__ == "__main__":
    run_checks(sys.modules[__name__])
