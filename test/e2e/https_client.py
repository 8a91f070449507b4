"""tritonclient over HTTPS: `https_client.py ADDRESS CA_FILE`. Exits with 0 when everything holds."""
import ssl
import sys

import gevent.ssl
import numpy as np
import tritonclient.http as http


def check(client):
    assert client.is_server_ready()
    values = np.array([[1, 2, 3]], dtype=np.float32)
    tensor = http.InferInput("INPUT0", list(values.shape), "FP32")
    tensor.set_data_from_numpy(values)
    result = client.infer("numbers", [tensor]).as_numpy("OUTPUT0")
    assert np.array_equal(result, values), result
    client.close()


def main():
    address, ca_file = sys.argv[1:]
    check(
        http.InferenceServerClient(
            address, ssl=True, insecure=True, ssl_context_factory=gevent.ssl._create_unverified_context
        )
    )
    check(
        http.InferenceServerClient(
            address,
            ssl=True,
            ssl_options={"ca_certs": ca_file},
            ssl_context_factory=lambda: gevent.ssl.create_default_context(cafile=ca_file),
        )
    )
    try:
        http.InferenceServerClient(
            address, ssl=True, ssl_context_factory=gevent.ssl.create_default_context
        ).is_server_live()
    except ssl.SSLCertVerificationError:
        print("ok")
        return
    raise AssertionError("an unknown certificate was trusted")


main()
