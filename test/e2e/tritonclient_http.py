"""Driver of tritonclient.test.ts: an ordinary tritonclient.http program, one function per behaviour.

    tritonclient_http.py URL EXPLICIT_URL     URL serves examples/models; EXPLICIT_URL the same, loaded by request

Prints "ok NAME" or "not ok NAME" with the reason for each function whose name starts with check_.
"""
import json
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def tensor(name, value, binary=True):
    out = triton.InferInput(name, list(value.shape), np_to_triton_dtype(value.dtype))
    out.set_data_from_numpy(value, binary_data=binary)
    return out


def numbers(rows=1):
    a = np.arange(16 * rows, dtype=np.int32).reshape(rows, 16)
    return a, np.full_like(a, 3)


def add_sub(client, binary_in=True, binary_out=True, rows=1, **more):
    a, b = numbers(rows)
    outputs = [triton.InferRequestedOutput(f"OUTPUT{i}", binary_data=binary_out) for i in (0, 1)]
    result = client.infer("add_sub_int32", [tensor("INPUT0", a, binary_in), tensor("INPUT1", b, binary_in)],
                          outputs=outputs, **more)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)
    return result


def raises(call, *texts):
    try:
        call()
    except InferenceServerException as error:
        for text in texts:
            assert text in str(error), f"expected {text!r} in {error!s}"
        return error
    raise AssertionError(f"no error; expected one with {texts}")


def digit(name):
    request = json.loads((EXAMPLES / "images" / f"{name}.json").read_text())
    return np.array(request["inputs"][0]["data"], np.float32).reshape(1, 1, 8, 8)


def check_health(client, explicit):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("add_sub_int32") and client.is_model_ready("scaler", "2")
    assert not client.is_model_ready("no_such") and not client.is_model_ready("scaler", "9")


def check_server_metadata(client, explicit):
    metadata = client.get_server_metadata()
    assert set(metadata) == {"name", "version", "extensions"}, metadata
    for extension in ("classification", "model_repository", "binary_tensor_data", "statistics", "logging"):
        assert extension in metadata["extensions"], metadata


def check_model_metadata(client, explicit):
    metadata = client.get_model_metadata("scaler")
    assert metadata["name"] == "scaler" and metadata["versions"] == ["1", "2", "3"], metadata
    assert metadata["inputs"] == [{"name": "X", "datatype": "FP32", "shape": [-1, -1]}], metadata
    assert client.get_model_metadata("tokens")["inputs"] == [{"name": "TEXT", "datatype": "BYTES", "shape": [-1, 1]}]


def check_model_config(client, explicit):
    config = client.get_model_config("digits")
    assert config["max_batch_size"] == 32 and config["backend"] == "onnxruntime", config
    assert config["input"][0]["dims"] == [1, 8, 8] and config["output"][0]["label_filename"] == "labels.txt", config
    assert "dynamic_batching" in config, config


def check_auto_completed_config(client, explicit):
    config = client.get_model_config("add_sub")
    assert config["backend"] == "onnxruntime" and config["platform"] == "onnxruntime_onnx", config
    assert config["max_batch_size"] > 0 and [i["dims"] for i in config["input"]] == [[4], [4]], config
    a = np.array([[1, 2, 3, 4]], np.float32)
    result = client.infer("add_sub", [tensor("INPUT0", a), tensor("INPUT1", a)])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + a)


def check_infer_binary_and_json_in_every_mix(client, explicit):
    for binary_in in (True, False):
        for binary_out in (True, False):
            add_sub(client, binary_in, binary_out, rows=3)


def check_infer_id_and_no_outputs_named(client, explicit):
    a, b = numbers()
    result = client.infer("add_sub_int32", [tensor("INPUT0", a), tensor("INPUT1", b)], request_id="seven")
    response = result.get_response()
    assert response["id"] == "seven" and response["model_version"] == "1", response
    assert sorted(o["name"] for o in response["outputs"]) == ["OUTPUT0", "OUTPUT1"], response


def check_versions(client, explicit):
    x = np.array([[1, 2]], np.float32)
    for version, factor in (("1", 1), ("2", 10), ("3", 100), ("", 100)):
        result = client.infer("scaler", [tensor("X", x)], model_version=version)
        np.testing.assert_array_equal(result.as_numpy("Y"), x * factor)


def check_classification(client, explicit):
    for name in ("zero", "seven", "nine"):
        for binary in (True, False):
            wanted = triton.InferRequestedOutput("SCORES", binary_data=binary, class_count=3)
            top = client.infer("digits", [tensor("IMAGE", digit(name))], outputs=[wanted]).as_numpy("SCORES")
            assert top.shape == (1, 3), top.shape
            entries = [e.decode() if isinstance(e, bytes) else e for e in top[0]]
            scores = [float(e.split(":")[0]) for e in entries]
            assert entries[0].split(":")[2] == name and scores == sorted(scores, reverse=True), entries


def check_batch_of_digits(client, explicit):
    names = (EXAMPLES / "models" / "digits" / "labels.txt").read_text().split()
    images = np.concatenate([digit(name) for name in names])
    scores = client.infer("digits", [tensor("IMAGE", images)]).as_numpy("SCORES")
    assert scores.shape == (10, 10) and list(scores.argmax(axis=1)) == list(range(10)), scores.argmax(axis=1)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)


def check_compression_both_ways(client, explicit):
    for algorithm in ("gzip", "deflate"):
        add_sub(client, request_compression_algorithm=algorithm)
        add_sub(client, response_compression_algorithm=algorithm)
        add_sub(client, False, False, request_compression_algorithm=algorithm, response_compression_algorithm=algorithm)


def check_string_tensors(client, explicit):
    text = np.array([["to be or not"], ["naïve café"]], dtype=np.object_)
    for binary in (True, False):
        outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ("WORDS", "COUNT")]
        result = client.infer("tokens", [tensor("TEXT", text, binary)], outputs=outputs)
        words = [[w.decode() if isinstance(w, bytes) else w for w in row] for row in result.as_numpy("WORDS")]
        assert words == [["to", "be", "or", "not"], ["naïve", "café", "", ""]], words
        assert result.as_numpy("COUNT").tolist() == [[4], [2]], result.as_numpy("COUNT")


def check_async_infer(client, explicit):
    pending = []
    for factor in range(16):
        x = np.full((1, 4), factor, np.float32)
        pending.append((x, client.async_infer("scaler", [tensor("X", x)], model_version="2", request_id=str(factor))))
    for index, (x, request) in enumerate(pending):
        result = request.get_result()
        assert result.get_response()["id"] == str(index)
        np.testing.assert_array_equal(result.as_numpy("Y"), x * 10)


def check_generate_and_parse_body(client, explicit):
    a, b = numbers()
    body, head_size = triton.InferenceServerClient.generate_request_body([tensor("INPUT0", a), tensor("INPUT1", b)])
    assert head_size is not None and len(body) == head_size + a.nbytes + b.nbytes


def check_statistics(client, explicit):
    def counters():
        entry = client.get_inference_statistics("add_sub_int32")["model_stats"][0]
        return entry["inference_count"], entry["execution_count"], entry["inference_stats"]["success"]["count"]

    before = counters()
    add_sub(client, rows=4)
    add_sub(client)
    after = counters()
    assert [a - b for a, b in zip(after, before)] == [5, 2, 2], (before, after)
    assert {e["name"] for e in client.get_inference_statistics()["model_stats"]} >= {"digits", "scaler", "tokens"}
    assert len(client.get_inference_statistics("scaler")["model_stats"]) == 3


def check_repository_index(client, explicit):
    index = client.get_model_repository_index()
    ready = {(e["name"], e["version"]) for e in index if e["state"] == "READY"}
    assert ready >= {("digits", "1"), ("scaler", "1"), ("scaler", "3"), ("tokens", "1")}, index
    assert all("state" not in e for e in explicit.get_model_repository_index() if e["name"] == "digits")


def check_load_and_unload(client, explicit):
    raises(lambda: add_sub(explicit), "Request for unknown model: 'add_sub_int32' is not found")
    explicit.load_model("add_sub_int32")
    assert explicit.is_model_ready("add_sub_int32")
    add_sub(explicit)
    explicit.unload_model("add_sub_int32")
    raises(lambda: add_sub(explicit), "Request for unknown model: 'add_sub_int32' has no available versions")
    for _ in range(100):  # the unload is accepted at once and finishes in its own time
        entry = [e for e in explicit.get_model_repository_index() if e["name"] == "add_sub_int32"][0]
        if entry["state"] == "UNAVAILABLE":
            break
        time.sleep(0.05)
    assert entry["state"] == "UNAVAILABLE" and entry["reason"] == "unloaded", entry
    raises(lambda: client.load_model("add_sub_int32"),
           "explicit model load / unload is not allowed if polling is enabled")


def check_load_with_config_override(client, explicit):
    config = json.dumps({"backend": "onnxruntime", "max_batch_size": 2, "version_policy": {"specific": {"versions": [2]}}})
    explicit.load_model("scaler", config=config)
    try:
        assert explicit.get_model_config("scaler")["max_batch_size"] == 2
        assert explicit.get_model_metadata("scaler")["versions"] == ["2"]
        three = np.ones((3, 1), np.float32)
        raises(lambda: explicit.infer("scaler", [tensor("X", three)]), "must be <= 2")
    finally:
        explicit.unload_model("scaler")


def check_load_with_files(client, explicit):
    content = (EXAMPLES / "models" / "scaler" / "2" / "model.onnx").read_bytes()
    explicit.load_model("sent", config='{"backend": "onnxruntime"}', files={"file:7/model.onnx": content})
    try:
        x = np.array([[4]], np.float32)
        result = explicit.infer("sent", [tensor("X", x)])
        assert result.get_response()["model_version"] == "7"
        np.testing.assert_array_equal(result.as_numpy("Y"), [[40]])
    finally:
        explicit.unload_model("sent")


def check_errors(client, explicit):
    a, b = numbers()
    unknown = raises(lambda: client.infer("no_such", [tensor("X", b)]), "Request for unknown model: 'no_such' is not found")
    assert unknown.status() in ("400", "404"), unknown.status()
    raises(lambda: client.infer("add_sub_int32", [tensor("INPUT0", a)]), "expected 2 inputs but got 1 inputs for model 'add_sub_int32'")
    raises(lambda: client.infer("add_sub_int32", [tensor("INPUT0", a[:, :8].copy()), tensor("INPUT1", b)]),
           "unexpected shape for input 'INPUT0' for model 'add_sub_int32'. Expected [-1,16], got [1,8]")
    raises(lambda: client.infer("add_sub_int32", [tensor("INPUT0", a.astype(np.float32)), tensor("INPUT1", b)]),
           "inference input 'INPUT0' data-type is 'FP32', but model 'add_sub_int32' expects 'INT32'")
    raises(lambda: client.infer("add_sub_int32", [tensor("INPUT0", a), tensor("INPUT1", b)],
                                outputs=[triton.InferRequestedOutput("NOPE")]),
           "unexpected inference output 'NOPE' for model 'add_sub_int32'")
    raises(lambda: explicit.load_model("no_such"), "failed to load 'no_such', failed to poll from model repository")
    raises(lambda: client.get_model_metadata("scaler", "9"), "Request for unknown model: 'scaler' version 9 is not found")


def check_log_settings(client, explicit):
    before = client.get_log_settings()
    assert {"log_info", "log_warning", "log_error", "log_verbose_level", "log_format"} <= set(before), before
    assert client.update_log_settings({"log_verbose_level": 1, "log_format": "ISO8601"})["log_verbose_level"] == 1
    assert client.get_log_settings()["log_format"] == "ISO8601"
    client.update_log_settings({k: before[k] for k in ("log_verbose_level", "log_format")})
    assert client.get_log_settings() == before
    raises(lambda: client.update_log_settings({"log_format": "nothing"}))


def main(url, explicit_url):
    client = triton.InferenceServerClient(url, concurrency=8)
    explicit = triton.InferenceServerClient(explicit_url)
    failures = 0
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check(client, explicit)
                print(f"ok {name}")
            except Exception:
                failures += 1
                print(f"not ok {name}\n{traceback.format_exc()}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
