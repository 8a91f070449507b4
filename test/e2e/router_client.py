"""Driver of router.test.ts: A/B tests, version labels and live weights through tritonclient, over HTTP and gRPC.

    router_client.py HTTP GRPC METRICS     addresses of a server with the models of router_models/, loaded by request

Prints "ok NAME" or "not ok NAME" with the reason for each function whose name starts with check_.
"""
import collections
import json
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from checks import raises, run_checks

X = np.ones((1, 1), dtype=np.float32)


class Server:
    def __init__(self, http_address, grpc_address, metrics_address):
        self.http_address = http_address
        self.http = http.InferenceServerClient(http_address, concurrency=4)
        self.grpc = grpc.InferenceServerClient(grpc_address)
        self.metrics_address = metrics_address

    def metrics(self):
        """{'name{labels}': value} of the router's metrics."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("nereid_router"))
        return {name: float(value) for name, value in pairs}

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.http_address}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def ask(client, module, model="ab", **more):
    tensor = module.InferInput("X", [1, 1], "FP32")
    tensor.set_data_from_numpy(X)
    return client.infer(model, [tensor], **more)


def version_of(result):
    return int(result.as_numpy("VERSION")[0, 0])


def both(server):
    return [(server.http, http), (server.grpc, grpc)]


def load_weights(server, stable, canary, **router):
    config = {
        "platform": "router",
        "router": {
            "target": [
                {"name": "stable", "model": "whoami", "version": "1", "weight": stable},
                {"name": "canary", "model": "whoami", "version": "2", "weight": canary},
            ],
            **router,
        },
    }
    server.http.load_model("ab", config=json.dumps(config))


def check_answers_carry_the_name_of_the_router(server):
    for client, module in both(server):
        result = ask(client, module, request_id="r1")
        response = result.get_response()
        if module is grpc:
            assert (response.model_name, response.model_version, response.id) == ("ab", "1", "r1"), response
        else:
            assert (response["model_name"], response["model_version"], response["id"]) == ("ab", "1", "r1"), response


def check_the_router_describes_itself_like_its_first_target(server):
    metadata = server.http.get_model_metadata("ab")
    assert metadata["platform"] == "router" and metadata["versions"] == ["1"], metadata
    assert metadata["inputs"] == [{"name": "X", "datatype": "FP32", "shape": [-1, 1]}], metadata
    assert server.grpc.get_model_metadata("ab").outputs[0].name == "VERSION"
    assert server.http.is_model_ready("ab") and server.grpc.is_model_ready("ab")
    config = server.http.get_model_config("ab")
    assert [target["weight"] for target in config["router"]["target"]] == [90, 10], config
    assert config["max_batch_size"] == 64 and config["input"][0]["name"] == "X", config
    # A client of Triton knows nothing of the field, and reads the rest.
    assert server.grpc.get_model_config("ab").config.platform == "router"
    as_json = server.grpc.get_model_config("ab", as_json=True)
    assert as_json["config"]["input"][0]["name"] == "X", as_json


def check_a_header_keeps_a_user_on_a_target(server):
    for client, module in both(server):
        homes = {}
        for i in range(300):
            user = f"user-{i % 60}"
            version = version_of(ask(client, module, headers={"x-user": user}))
            assert homes.setdefault(user, version) == version, f"{user} has moved"
        assert set(homes.values()) == {1, 2}, homes
        # The same users meet the same targets over both protocols.
        if module is http:
            first = homes
    assert homes == first


def check_a_header_forces_a_target(server):
    for client, module in both(server):
        for name, version in (("stable", 1), ("canary", 2)):
            assert version_of(ask(client, module, headers={"x-nereid-target": name})) == version
        raises(
            lambda: ask(client, module, headers={"x-nereid-target": "carnary"}),
            "router 'ab' has no target 'carnary'; its targets are 'stable', 'canary'",
        )


def check_a_label_stands_for_a_version(server):
    for client, module in both(server):
        for label, version in (("stable", 1), ("canary", 2), ("3", 3), ("", 3)):
            assert version_of(ask(client, module, "whoami", model_version=label)) == version
        assert client.is_model_ready("whoami", "stable")
    assert server.http.get_model_metadata("whoami", "stable")["versions"] == ["1"]
    assert list(server.grpc.get_model_metadata("whoami", "canary").versions) == ["2"]
    assert server.http.get_model_config("whoami", "stable")["version_labels"] == {"canary": 2, "stable": 1}
    assert server.grpc.get_model_config("whoami", "stable").config.name == "whoami"
    assert server.http.get_inference_statistics("whoami", "canary")["model_stats"][0]["version"] == "2"
    assert server.grpc.get_inference_statistics("whoami", "canary").model_stats[0].version == "2"


def check_an_unknown_label_is_told_with_the_labels(server):
    text = "model 'whoami' has no version label 'prod'; its labels are 'canary', 'stable'"
    for client, module in both(server):
        raises(lambda: ask(client, module, "whoami", model_version="prod"), text)
        raises(lambda: client.get_model_metadata("whoami", "prod"), text)
        raises(lambda: client.get_inference_statistics("whoami", "prod"), text)
    assert server.get("/v2/models/whoami/versions/prod/ready")[0] == 404


def check_a_model_without_labels_answers_as_triton_does(server):
    assert server.get("/v2/models/ab/versions/stable/ready") == (404, '{"error":"Not Found"}')
    raises(
        lambda: ask(server.grpc, grpc, model_version="stable"),
        "failed to get model version from specified version string 'stable' (details: stol), "
        "version should be an integral value > 0",
    )


def check_weights_change_under_load_without_a_failed_request(server):
    stop = threading.Event()
    failures, counts = [], collections.Counter()

    def send(client, module):
        while not stop.is_set():
            try:
                counts[version_of(ask(client, module))] += 1
            except Exception as error:
                failures.append(error)

    clients = [(http.InferenceServerClient(server.http_address), http) for _ in range(3)]
    threads = [threading.Thread(target=send, args=pair) for pair in [*clients, (server.grpc, grpc)]]
    for thread in threads:
        thread.start()
    for i in range(30):
        load_weights(server, *((100, 0) if i % 2 else (0, 100)))
        time.sleep(0.05)
    load_weights(server, 0, 100)
    time.sleep(0.1)
    counts.clear()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == [], f"{len(failures)} failed, the first: {failures[0]}"
    # What was on its way when the weights changed may still have come from the other.
    assert counts[2] > 20 and counts[1] <= 4, counts


def check_the_metrics_tell_an_a_b_test(server):
    load_weights(server, 70, 30, report_target=True)
    key = 'nereid_router_requests_total{outcome="success",router="ab",target="%s"}'
    before = server.metrics()
    counts = collections.Counter()
    for _ in range(1000):
        result = ask(server.http, http)
        name = result.get_response()["parameters"]["nereid_target"]
        assert version_of(result) == {"stable": 1, "canary": 2}[name]
        counts[name] += 1
    after = server.metrics()
    for name, weight in (("stable", 70), ("canary", 30)):
        assert after[key % name] - before[key % name] == counts[name], counts
        assert after[f'nereid_router_target_weight{{router="ab",target="{name}"}}'] == weight
        assert after[f'nereid_router_target_ready{{router="ab",target="{name}"}}'] == 1
    assert abs(counts["canary"] - 300) < 75, counts
    stats = server.http.get_inference_statistics("ab")["model_stats"][0]["inference_stats"]
    assert stats["success"]["count"] == 1000, stats


def check_a_shadow_gets_copies_and_nobody_waits_for_it(server):
    load_weights(server, 1, 0, shadow=[{"name": "next", "model": "whoami", "version": "3", "max_inflight_requests": 1000}])
    key = 'nereid_router_shadow_requests_total{outcome="success",router="ab",shadow="next"}'
    for _ in range(200):
        assert version_of(ask(server.http, http)) == 1
    end = time.monotonic() + 10
    while server.metrics()[key] < 200:
        assert time.monotonic() < end, server.metrics()
        time.sleep(0.05)
    assert server.metrics()['nereid_router_shadow_in_flight{router="ab",shadow="next"}'] == 0


def check_a_typo_in_a_target_costs_no_request(server):
    config = {"platform": "router", "router": {"target": [
        {"model": "whoami", "version": "1", "weight": 1}, {"model": "whomai", "weight": 99}]}}
    server.http.load_model("ab", config=json.dumps(config))
    for _ in range(50):
        assert version_of(ask(server.http, http)) == 1
    assert server.metrics()['nereid_router_target_ready{router="ab",target="whomai"}'] == 0


def check_a_config_that_is_wrong_leaves_the_router_as_it_was(server):
    load_weights(server, 1, 0)
    raises(lambda: load_weights(server, 0, 0), "failed to load 'ab', failed to poll from model repository")
    assert version_of(ask(server.http, http)) == 1


if __name__ == "__main__":
    run_checks(sys.modules[__name__], Server(*sys.argv[1:4]))
