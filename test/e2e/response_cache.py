"""Real tritonclient programs against a server with a response cache: arguments are the HTTP and gRPC address of a server
with plenty of room, the HTTP address of one with room for a few answers, and of one in explicit mode."""
import json
import sys

import checks
import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import shared_memory

SPARE = iter(range(1, 1_000_000))


def spare(shape=(1, 4)):
    """An array that no check has used before."""
    count = int(np.prod(shape))
    return (np.arange(count, dtype=np.float32) + 1000 * next(SPARE)).reshape(shape)


def ask(client, model, value, outputs=None, **options):
    module = grpc if isinstance(client, grpc.InferenceServerClient) else http
    tensor = module.InferInput("INPUT0", list(value.shape), "FP32")
    tensor.set_data_from_numpy(value)
    return client.infer(model, [tensor], outputs=outputs, **options)


def add_sub(client, value, outputs=None):
    tensors = []
    for name in ("INPUT0", "INPUT1"):
        tensor = http.InferInput(name, list(value.shape), "INT32")
        tensor.set_data_from_numpy(value)
        tensors.append(tensor)
    return client.infer("cached_add_sub", tensors, outputs=outputs)


class Counted:
    """How many hits, misses and executions there were inside a with block."""

    def __init__(self, client, model):
        self.client, self.model = client, model

    def now(self):
        stats = self.client.get_inference_statistics(self.model)["model_stats"][0]
        inference = stats["inference_stats"]
        return np.array([inference["cache_hit"]["count"], inference["cache_miss"]["count"], stats["execution_count"]])

    def __enter__(self):
        self.before = self.now()
        return self

    def __exit__(self, *_):
        self.hits, self.misses, self.executions = (self.now() - self.before).tolist()


def check_a_hit_gives_the_same_bytes_without_an_execution(main, *_):
    value = spare()
    with Counted(main, "cached") as counted:
        first = ask(main, "cached", value, request_id="a")
        second = ask(main, "cached", value, request_id="b")
    assert (counted.hits, counted.misses, counted.executions) == (1, 1, 1), vars(counted)
    assert second.as_numpy("OUTPUT0").tobytes() == first.as_numpy("OUTPUT0").tobytes() == value.tobytes()
    assert second.get_response()["id"] == "b"
    assert second.get_response()["model_version"] == "1"


def check_http_and_grpc_share_answers(main, rpc, *_):
    value = spare()
    with Counted(main, "cached") as counted:
        ask(main, "cached", value)
        answer = ask(rpc, "cached", value)
    assert counted.hits == 1
    assert np.array_equal(answer.as_numpy("OUTPUT0"), value)


def check_json_and_binary_share_answers(main, *_):
    value = spare()
    tensor = http.InferInput("INPUT0", list(value.shape), "FP32")
    tensor.set_data_from_numpy(value, binary_data=False)
    with Counted(main, "cached") as counted:
        ask(main, "cached", value, [http.InferRequestedOutput("OUTPUT0", binary_data=True)])
        answer = main.infer("cached", [tensor], outputs=[http.InferRequestedOutput("OUTPUT0", binary_data=False)])
    assert counted.hits == 1
    assert np.array_equal(answer.as_numpy("OUTPUT0"), value)


def check_the_same_bytes_in_another_shape_are_no_hit(main, *_):
    value = spare((2, 4))
    with Counted(main, "cached") as counted:
        for shape in ((2, 4), (4, 2), (1, 8)):
            answer = ask(main, "cached", value.reshape(shape))
            assert answer.as_numpy("OUTPUT0").shape == shape
    assert (counted.hits, counted.misses) == (0, 3)


def check_another_parameter_is_no_hit(main, *_):
    value = spare()
    with Counted(main, "cached") as counted:
        ask(main, "cached", value)
        ask(main, "cached", value, parameters={"mode": 1})
        ask(main, "cached", value, parameters={"mode": 2})
        ask(main, "cached", value, parameters={"mode": 2})
    assert (counted.hits, counted.misses) == (1, 3)


def check_priority_and_timeout_do_not_matter(main, *_):
    value = spare()
    with Counted(main, "cached") as counted:
        ask(main, "cached", value)
        ask(main, "cached", value, timeout=5_000_000)
    assert counted.hits == 1


def check_other_requested_outputs_are_no_hit(main, *_):
    value = spare((1, 16)).astype(np.int32)
    with Counted(main, "cached_add_sub") as counted:
        both = add_sub(main, value)
        for name in ("OUTPUT0", "OUTPUT1"):
            one = add_sub(main, value, [http.InferRequestedOutput(name)])
            assert [output["name"] for output in one.get_response()["outputs"]] == [name]
            assert np.array_equal(one.as_numpy(name), both.as_numpy(name))
        again = add_sub(main, value)
    assert (counted.hits, counted.misses) == (1, 3)
    assert np.array_equal(again.as_numpy("OUTPUT1"), value - value)


def check_classification_is_made_of_the_cached_tensor(main, *_):
    value = np.array([[next(SPARE), 7, 1, 9]], dtype=np.float32)
    tops = [
        ask(main, "cached", value, [http.InferRequestedOutput("OUTPUT0", class_count=count)]).as_numpy("OUTPUT0")
        for count in (2, 3, 2)
    ]
    assert [top.shape[-1] for top in tops] == [2, 3, 2], tops
    assert np.array_equal(tops[0], tops[2])
    assert np.array_equal(tops[0].reshape(-1), tops[1].reshape(-1)[:2])


def check_shared_memory_is_hashed_by_content(main, *_):
    value, other = spare(), spare()
    size = value.nbytes
    region = shared_memory.create_shared_memory_region("cached_in", "/nereid_cached_in", size)
    try:
        main.register_system_shared_memory("cached_in", "/nereid_cached_in", size)
        tensor = http.InferInput("INPUT0", list(value.shape), "FP32")
        tensor.set_shared_memory("cached_in", size)
        with Counted(main, "cached") as counted:
            ask(main, "cached", value)
            for content in (value, other, value):
                shared_memory.set_shared_memory_region(region, [content])
                answer = main.infer("cached", [tensor])
                assert np.array_equal(answer.as_numpy("OUTPUT0"), content)
        assert (counted.hits, counted.misses) == (2, 2)
    finally:
        main.unregister_system_shared_memory("cached_in")
        shared_memory.destroy_shared_memory_region(region)


def check_large_tensors_are_found(main, *_):
    value = spare((1, 1_000_000))
    with Counted(main, "cached") as counted:
        ask(main, "cached", value)

        def is_hit():
            before = counted.now()[0]
            assert np.array_equal(ask(main, "cached", value).as_numpy("OUTPUT0"), value)
            return counted.now()[0] == before + 1

        # it is stored in steps, after the answer
        checks.wait_until(is_hit, "a hit")


def check_an_error_is_the_same_with_and_without_a_cache(main, *_):
    wrong = http.InferInput("INPUT0", [1, 1], "INT32")
    wrong.set_data_from_numpy(np.zeros((1, 1), np.int32))
    texts = [str(checks.raises(lambda m=model: main.infer(m, [wrong]))) for model in ("cached", "plain")]
    assert texts[0].replace("cached", "plain") == texts[1], texts


def check_a_model_that_does_not_ask_for_it_is_not_cached(main, *_):
    value = spare()
    with Counted(main, "plain") as counted:
        ask(main, "plain", value)
        ask(main, "plain", value)
    assert (counted.hits, counted.misses, counted.executions) == (0, 0, 2)


def check_a_hit_of_an_ensemble_executes_none_of_its_models(main, *_):
    value = spare()
    with Counted(main, "cached_ensemble") as outer, Counted(main, "plain") as inner:
        first = ask(main, "cached_ensemble", value)
        second = ask(main, "cached_ensemble", value)
    assert (outer.hits, outer.misses, inner.executions) == (1, 1, 1), (vars(outer), vars(inner))
    assert second.as_numpy("OUTPUT0").tobytes() == first.as_numpy("OUTPUT0").tobytes() == value.tobytes()
    assert second.get_response()["model_name"] == "cached_ensemble"


def check_the_least_recently_used_answer_makes_room(_main, _rpc, small, *_):
    values = [spare() for _ in range(40)]
    ask(small, "cached", values[0])
    for value in values[1:]:
        ask(small, "cached", value)
        with Counted(small, "cached") as counted:
            ask(small, "cached", values[0])
        assert counted.hits == 1, "what is asked for again and again was evicted"
    with Counted(small, "cached") as counted:
        ask(small, "cached", values[1])
    assert (counted.hits, counted.misses) == (0, 1)


def check_what_is_larger_than_the_cache_is_served(_main, _rpc, small, *_):
    value = spare((1, 5000))
    with Counted(small, "cached") as counted:
        for _ in range(2):
            assert np.array_equal(ask(small, "cached", value).as_numpy("OUTPUT0"), value)
    assert (counted.hits, counted.misses) == (0, 2)


def check_a_reload_forgets(_main, _rpc, _small, explicit):
    explicit.load_model("cached")
    value = spare()
    ask(explicit, "cached", value)
    with Counted(explicit, "cached") as counted:
        ask(explicit, "cached", value)
    assert counted.hits == 1
    explicit.unload_model("cached")
    checks.wait_until(lambda: not explicit.is_model_ready("cached"), "unload")
    explicit.load_model("cached")
    with Counted(explicit, "cached") as counted:
        ask(explicit, "cached", value)
    assert (counted.hits, counted.misses) == (0, 1)


def check_an_ensemble_forgets_when_one_of_its_models_is_loaded_anew(_main, _rpc, _small, explicit):
    explicit.load_model("cached_ensemble")
    value = spare()
    ask(explicit, "cached_ensemble", value)
    with Counted(explicit, "cached_ensemble") as counted:
        ask(explicit, "cached_ensemble", value)
    assert counted.hits == 1
    config = explicit.get_model_config("plain")
    config["parameters"]["execute_delay_ms"] = {"string_value": "1"}
    explicit.load_model("plain", config=json.dumps(config))
    with Counted(explicit, "plain") as inner:
        ask(explicit, "cached_ensemble", value)
    assert inner.executions == 1, "an answer of the old model"


def main():
    addresses = sys.argv[1:]
    clients = [http.InferenceServerClient(addresses[0]), grpc.InferenceServerClient(addresses[1])]
    clients += [http.InferenceServerClient(address) for address in addresses[2:]]
    checks.run_checks(sys.modules[__name__], *clients)


if __name__ == "__main__":
    main()
