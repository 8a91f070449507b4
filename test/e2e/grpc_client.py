"""Driver of grpc-client.test.ts: an ordinary blocking tritonclient.grpc program, one function per behaviour.

    grpc_client.py URL EXPLICIT_URL     URL serves examples/models, an identity model echo_TYPE per datatype, slow (3 s),
                                        levels (100 ms, three priorities) and request_info; EXPLICIT_URL the examples,
                                        loaded by request, with compressed answers and frequent pings allowed
"""
import json
import queue
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import tritonclient.grpc as triton
from checks import counts, raises, run_checks, tensor, wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SLOW_S = 3


def numbers(rows=1):
    a = np.arange(16 * rows, dtype=np.int32).reshape(rows, 16)
    return a, np.full_like(a, 3)


def add_sub(client, rows=1, **more):
    a, b = numbers(rows)
    result = client.infer("add_sub_int32", [tensor("INPUT0", a), tensor("INPUT1", b)], **more)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)
    return result


def digit(name):
    request = json.loads((EXAMPLES / "images" / f"{name}.json").read_text())
    return np.array(request["inputs"][0]["data"], np.float32).reshape(1, 1, 8, 8)


def echo(client, model, value, datatype=None, **more):
    return client.infer(model, [tensor("INPUT0", value, datatype)], **more).as_numpy("OUTPUT0")


def check_health(client, explicit):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("add_sub_int32") and client.is_model_ready("scaler", "2")
    assert not client.is_model_ready("no_such") and not client.is_model_ready("scaler", "9")


def check_server_metadata(client, explicit):
    metadata = client.get_server_metadata()
    assert metadata.name and metadata.version, metadata
    assert {"classification", "model_repository", "statistics", "logging"} <= set(metadata.extensions), metadata
    assert set(client.get_server_metadata(as_json=True)) == {"name", "version", "extensions"}


def check_model_metadata(client, explicit):
    metadata = client.get_model_metadata("scaler")
    assert metadata.name == "scaler" and list(metadata.versions) == ["1", "2", "3"], metadata
    assert (metadata.inputs[0].datatype, list(metadata.inputs[0].shape)) == ("FP32", [-1, -1]), metadata
    as_json = client.get_model_metadata("tokens", as_json=True)
    assert as_json["inputs"] == [{"name": "TEXT", "datatype": "BYTES", "shape": ["-1", "1"]}], as_json


def check_model_config(client, explicit):
    config = client.get_model_config("digits").config
    assert config.max_batch_size == 32 and config.backend == "onnxruntime" and config.HasField("dynamic_batching"), config
    as_json = client.get_model_config("digits", as_json=True)["config"]
    assert as_json["input"][0]["dims"] == ["1", "8", "8"], as_json
    assert as_json["output"][0]["label_filename"] == "labels.txt", as_json


def check_infer_id_versions_and_outputs(client, explicit):
    response = add_sub(client, rows=3, request_id="seven").get_response()
    assert (response.id, response.model_name, response.model_version) == ("seven", "add_sub_int32", "1"), response
    a, b = numbers()
    only = [triton.InferRequestedOutput("OUTPUT1")]
    result = client.infer("add_sub_int32", [tensor("INPUT0", a), tensor("INPUT1", b)], outputs=only)
    assert [output.name for output in result.get_response().outputs] == ["OUTPUT1"]
    x = np.array([[1, 2]], np.float32)
    for version, factor in (("1", 1), ("2", 10), ("3", 100), ("", 100)):
        result = client.infer("scaler", [tensor("X", x)], model_version=version)
        np.testing.assert_array_equal(result.as_numpy("Y"), x * factor)


def check_every_number_datatype(client, explicit):
    for dtype in "uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64".split():
        info = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
        value = np.array([[0, 1, info.min, info.max, 42]], dtype)
        got = echo(client, f"echo_{dtype.replace('float', 'fp')}", value)
        assert got.dtype == value.dtype, got.dtype
        np.testing.assert_array_equal(got, value)


def check_bool_and_bf16(client, explicit):
    flags = np.array([[True, False, True]])
    np.testing.assert_array_equal(echo(client, "echo_bool", flags), flags)
    halves = np.array([[1.5, -2, 0, 3e38]], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(echo(client, "echo_bf16", halves, "BF16").astype(np.float32), halves.astype(np.float32))


def check_bytes(client, explicit):
    texts = np.array([[b"", "zwölf".encode(), bytes(range(256)), b"x" * 100_000]], np.object_)
    got = echo(client, "echo_string", texts)
    assert got.tolist() == texts.tolist()
    sentences = np.array([["to be or not"], ["naïve café"]], np.object_)
    result = client.infer("tokens", [tensor("TEXT", sentences)])
    words = [[word.decode() for word in row] for row in result.as_numpy("WORDS")]
    assert words == [["to", "be", "or", "not"], ["naïve", "café", "", ""]], words


def check_empty_and_large_tensors(client, explicit):
    assert echo(client, "echo_fp32", np.zeros((1, 0), np.float32)).shape == (1, 0)
    large = np.random.default_rng(1).random((1, 5_000_003), np.float32)
    np.testing.assert_array_equal(echo(client, "echo_fp32", large), large)


def check_classification(client, explicit):
    for name in ("zero", "seven"):
        wanted = triton.InferRequestedOutput("SCORES", class_count=3)
        top = client.infer("digits", [tensor("IMAGE", digit(name))], outputs=[wanted]).as_numpy("SCORES")
        entries = [entry.decode() for entry in top[0]]
        scores = [float(entry.split(":")[0]) for entry in entries]
        assert top.shape == (1, 3) and entries[0].split(":")[2] == name, entries
        assert scores == sorted(scores, reverse=True), entries


def check_request_parameters_and_headers_reach_the_model(client, explicit):
    parameters = {"text": "zwölf", "number": -7, "yes": True, "part": 0.5}
    headers = {"x-fwd-who": "me", "other": "kept back"}
    one = [tensor("IN", np.ones(1, np.int32))]
    result = client.infer("request_info", one, request_id="r1", parameters=parameters, headers=headers, timeout=123456)
    info = json.loads(result.as_numpy("INFO")[0])
    assert info == {"id": "r1", "timeout": 123456, "parameters": {**parameters, "x-fwd-who": "me"}}, info


def check_priority(client, explicit):
    done = queue.Queue()
    def send(name, priority):
        value = np.zeros((8, 1), np.float32)  # fills a batch
        client.async_infer("levels", [tensor("INPUT0", value)], lambda result, error: done.put((name, error)), priority=priority)
    send("first", 2)
    time.sleep(0.03)
    for name, priority in (("low", 3), ("middle", 0), ("high", 1)):
        send(name, priority)
    answers = [done.get(timeout=5) for _ in range(4)]
    assert answers == [(name, None) for name in ("first", "high", "middle", "low")], answers


def check_timeout_in_the_queue(client, explicit):
    done = queue.Queue()
    value = tensor("INPUT0", np.zeros((8, 1), np.float32))
    client.async_infer("levels", [value], lambda result, error: done.put(error))
    time.sleep(0.03)
    raises(lambda: client.infer("levels", [value], timeout=10_000), "Request timeout expired", status="UNAVAILABLE")
    assert done.get(timeout=5) is None


def check_deadline_stops_the_work(client, explicit):
    before = counts(client, "slow")
    start = time.monotonic()
    raises(lambda: echo(client, "slow", np.ones((1, 1), np.float32), client_timeout=0.3), status="DEADLINE_EXCEEDED")
    # The only instance is free again: the next request takes its own three seconds, not the rest of the first too.
    echo(client, "slow", np.ones((1, 1), np.float32))
    took = time.monotonic() - start
    assert SLOW_S + 0.3 <= took < 2 * SLOW_S - 0.5, took
    after = counts(client, "slow")
    assert [b - a for a, b in zip(before, after)] == [1, 1], (before, after)


def check_cancel_of_an_async_request(client, explicit):
    before = counts(client, "slow")
    done = queue.Queue()
    calls = [
        client.async_infer("slow", [tensor("INPUT0", np.ones((1, 1), np.float32))], lambda result, error: done.put(error))
        for _ in range(3)  # one runs, two wait
    ]
    time.sleep(0.2)
    assert counts(client, "slow") == before, "something is answered already"
    for call in calls:
        call.cancel()
    errors = [done.get(timeout=5) for _ in calls]
    assert [error.status() for error in errors] == ["StatusCode.CANCELLED"] * 3, errors
    # Less than the time of one of them.
    wait_until(lambda: counts(client, "slow") == (before[0], before[1] + 3), "all have failed", SLOW_S - 1)


def check_async_infer(client, explicit):
    done = queue.Queue()
    for factor in range(64):
        x = np.full((1, 4), factor, np.float32)
        client.async_infer("scaler", [tensor("X", x)], lambda result, error: done.put((result, error)),
                           model_version="2", request_id=str(factor))
    seen = set()
    for _ in range(64):
        result, error = done.get(timeout=10)
        assert error is None, error
        factor = int(result.get_response().id)
        np.testing.assert_array_equal(result.as_numpy("Y"), np.full((1, 4), factor * 10, np.float32))
        seen.add(factor)
    assert seen == set(range(64))


def check_compression(client, explicit):
    for algorithm in ("gzip", "deflate"):
        add_sub(client, rows=8, compression_algorithm=algorithm)
        large = np.zeros((1, 300_000), np.float32)
        np.testing.assert_array_equal(echo(client, "echo_fp32", large, compression_algorithm=algorithm), large)


def check_compressed_answers(client, explicit):
    explicit.load_model("scaler")
    try:
        for algorithm in (None, "gzip", "deflate"):
            x = np.ones((1, 50_000), np.float32)
            result = explicit.infer("scaler", [tensor("X", x)], compression_algorithm=algorithm)
            np.testing.assert_array_equal(result.as_numpy("Y"), x * 100)
    finally:
        explicit.unload_model("scaler")


def check_several_clients_and_channel_arguments(client, explicit):
    url = sys.argv[1]
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    for _ in range(5):
        with triton.InferenceServerClient(url, channel_args=options) as other:
            add_sub(other)
            add_sub(client)


def check_keepalive_pings(client, explicit):
    keepalive = triton.KeepAliveOptions(
        keepalive_time_ms=50, keepalive_timeout_ms=2000, keepalive_permit_without_calls=True, http2_max_pings_without_data=0)
    with triton.InferenceServerClient(sys.argv[2], keepalive_options=keepalive) as other:
        for _ in range(3):
            assert other.is_server_live()
            time.sleep(0.3)


def check_statistics(client, explicit):
    def counters():
        entry = client.get_inference_statistics("add_sub_int32").model_stats[0]
        return entry.inference_count, entry.execution_count, entry.inference_stats.success.count

    before = counters()
    add_sub(client, rows=4)
    add_sub(client)
    after = counters()
    assert [a - b for a, b in zip(after, before)] == [5, 2, 2], (before, after)
    as_json = client.get_inference_statistics(as_json=True)["model_stats"]
    assert {entry["name"] for entry in as_json} >= {"digits", "scaler", "tokens", "echo_bf16"}
    assert len(client.get_inference_statistics("scaler").model_stats) == 3


def check_repository_index(client, explicit):
    index = client.get_model_repository_index().models
    ready = {(entry.name, entry.version) for entry in index if entry.state == "READY"}
    assert ready >= {("digits", "1"), ("scaler", "1"), ("scaler", "3"), ("echo_bool", "1")}, index
    as_json = explicit.get_model_repository_index(as_json=True)["models"]
    assert {"name": "digits"} in as_json, as_json


def check_load_and_unload(client, explicit):
    raises(lambda: add_sub(explicit), "Request for unknown model: 'add_sub_int32' is not found", status="NOT_FOUND")
    explicit.load_model("add_sub_int32")
    assert explicit.is_model_ready("add_sub_int32")
    add_sub(explicit)
    explicit.unload_model("add_sub_int32")
    raises(lambda: add_sub(explicit), "Request for unknown model: 'add_sub_int32' has no available versions")
    entry = lambda: [e for e in explicit.get_model_repository_index().models if e.name == "add_sub_int32"][0]
    wait_until(lambda: entry().state == "UNAVAILABLE", "the model is gone")
    assert entry().reason == "unloaded", entry()
    raises(lambda: client.load_model("add_sub_int32"),
           "explicit model load / unload is not allowed if polling is enabled", status="UNAVAILABLE")


def check_load_with_config_override(client, explicit):
    config = {"backend": "onnxruntime", "max_batch_size": 2, "version_policy": {"specific": {"versions": [2]}}}
    explicit.load_model("scaler", config=json.dumps(config))
    try:
        assert explicit.get_model_config("scaler").config.max_batch_size == 2
        assert list(explicit.get_model_metadata("scaler").versions) == ["2"]
        raises(lambda: explicit.infer("scaler", [tensor("X", np.ones((3, 1), np.float32))]), "must be <= 2")
    finally:
        explicit.unload_model("scaler")
        explicit.load_model("scaler", config='{"backend": "onnxruntime", "max_batch_size": 8, "version_policy": {"all": {}}}')
        explicit.unload_model("scaler")


def check_load_with_files(client, explicit):
    content = (EXAMPLES / "models" / "scaler" / "2" / "model.onnx").read_bytes()
    explicit.load_model("sent", config='{"backend": "onnxruntime"}', files={"file:7/model.onnx": content})
    try:
        result = explicit.infer("sent", [tensor("X", np.array([[4]], np.float32))])
        assert result.get_response().model_version == "7"
        np.testing.assert_array_equal(result.as_numpy("Y"), [[40]])
    finally:
        explicit.unload_model("sent")


def check_trace_settings(client, explicit):
    before = client.get_trace_settings(as_json=True)["settings"]
    assert {"trace_level", "trace_rate", "trace_count", "log_frequency"} <= set(before), before
    changed = client.update_trace_settings(settings={"trace_rate": "500", "trace_count": "7"}).settings
    assert (changed["trace_rate"].value, changed["trace_count"].value) == (["500"], ["7"]), changed
    client.update_trace_settings("digits", {"trace_rate": "9"})
    assert client.get_trace_settings("digits").settings["trace_rate"].value == ["9"]
    assert client.get_trace_settings("scaler").settings["trace_rate"].value == ["500"]
    client.update_trace_settings("digits", {"trace_rate": None})
    client.update_trace_settings(settings={"trace_rate": None, "trace_count": None})
    assert client.get_trace_settings(as_json=True)["settings"] == before
    raises(lambda: client.update_trace_settings(settings={"trace_rate": "many"}), status="INVALID_ARGUMENT")
    raises(lambda: client.get_trace_settings("no_such"), "no_such")


def check_log_settings(client, explicit):
    before = client.get_log_settings(as_json=True)
    assert {"log_info", "log_verbose_level", "log_format"} <= set(before["settings"]), before
    changed = client.update_log_settings({"log_verbose_level": 1, "log_format": "ISO8601"}).settings
    assert (changed["log_verbose_level"].uint32_param, changed["log_format"].string_param) == (1, "ISO8601"), changed
    client.update_log_settings({"log_verbose_level": 0, "log_format": "default"})
    assert client.get_log_settings(as_json=True) == before
    raises(lambda: client.update_log_settings({"log_format": "nothing"}))


def check_errors(client, explicit):
    a, b = numbers()
    infer = lambda *inputs, **more: lambda: client.infer("add_sub_int32", list(inputs), **more)
    raises(lambda: client.infer("no_such", [tensor("X", b)]), "Request for unknown model: 'no_such' is not found", status="NOT_FOUND")
    raises(infer(tensor("INPUT0", a)), "expected 2 inputs but got 1 inputs for model 'add_sub_int32'", status="INVALID_ARGUMENT")
    raises(infer(tensor("INPUT0", a[:, :8].copy()), tensor("INPUT1", b)),
           "unexpected shape for input 'INPUT0' for model 'add_sub_int32'. Expected [-1,16], got [1,8]", status="INVALID_ARGUMENT")
    raises(infer(tensor("INPUT0", a.astype(np.float32)), tensor("INPUT1", b)),
           "inference input 'INPUT0' data-type is 'FP32', but model 'add_sub_int32' expects 'INT32'", status="INVALID_ARGUMENT")
    raises(infer(tensor("INPUT0", a), tensor("INPUT1", b), outputs=[triton.InferRequestedOutput("NOPE")]),
           "unexpected inference output 'NOPE' for model 'add_sub_int32'", status="INVALID_ARGUMENT")
    raises(lambda: explicit.load_model("no_such"), "failed to load 'no_such', failed to poll from model repository")
    raises(lambda: client.get_model_metadata("scaler", "9"), "Request for unknown model: 'scaler' version 9 is not found")
    raises(lambda: client.get_model_config("no_such"), "Request for unknown model: 'no_such' is not found", status="NOT_FOUND")


if __name__ == "__main__":
    run_checks(sys.modules[__name__], *(triton.InferenceServerClient(url) for url in sys.argv[1:3]))
