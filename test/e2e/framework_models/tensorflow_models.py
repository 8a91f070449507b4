"""Models of TensorFlow, and checks that the server answers what TensorFlow itself computes. Driver of
frameworks.test.ts; see v2_client.run for its arguments."""
import json
import os
import sys

import numpy as np
import tensorflow as tf
from v2_client import at_once, close, refused, run, same, tensors_text, version_of


def spec(name, shape, dtype=tf.float32):
    return tf.TensorSpec(shape, dtype, name=name)


class AddSub(tf.Module):
    @tf.function(input_signature=[spec("INPUT0", [None, 4]), spec("INPUT1", [None, 4])])
    def serve(self, INPUT0, INPUT1):
        return {"OUTPUT0": INPUT0 + INPUT1, "OUTPUT1": INPUT0 - INPUT1}

    @tf.function(input_signature=[spec("INPUT0", [None, 4])])
    def negate(self, INPUT0):
        return {"OUTPUT0": -INPUT0}


class Dense(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(np.random.default_rng(3).random((6, 3), np.float32))

    @tf.function(input_signature=[spec("x", [None, 6]), spec("row", [None], tf.int64)])
    def serve(self, x, row):
        return {"y": tf.nn.softmax(x @ self.weights), "next": row + 1}


class Texts(tf.Module):
    @tf.function(input_signature=[spec("words", [2, 2], tf.string)])
    def serve(self, words):
        return {"upper": tf.strings.upper(words), "joined": tf.strings.reduce_join(words, axis=1)}


class Bits(tf.Module):
    @tf.function(input_signature=[spec("x", [3], tf.bfloat16)])
    def serve(self, x):
        return {"y": x + x}


class Strict(tf.Module):
    @tf.function(input_signature=[spec("x", [None, 2])])
    def serve(self, x):
        with tf.control_dependencies([tf.debugging.assert_non_negative(x)]):
            return {"y": tf.identity(x)}


def save(folder, name, module, config=None, **signatures):
    path = os.path.join(version_of(folder, name, config), "model.savedmodel")
    tf.saved_model.save(module, path, signatures=signatures or {"serving_default": module.serve})


def make(folder):
    module = AddSub()
    save(folder, "add_sub", module)
    parameter = 'parameters { key: "TF_SIGNATURE_DEF" value { string_value: "%s" } }\n'
    both = {"serving_default": module.serve, "negate": module.negate}
    save(folder, "negate", module, 'backend: "tensorflow"\n' + parameter % "negate", **both)
    save(folder, "no_signature", module, 'backend: "tensorflow"\n' + parameter % "nothing", **both)
    delayed = "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 200000 }\n"
    delayed += "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
    threads = 'parameters { key: "TF_NUM_INTRA_THREADS" value { string_value: "1" } }\n'
    save(folder, "dense", Dense(), 'platform: "tensorflow_savedmodel"\n' + delayed + threads)
    save(folder, "texts", Texts())
    save(folder, "bits", Bits())
    save(folder, "strict", Strict())
    wrong = tensors_text("input", ("INPUT0", "FP32", [5]), ("INPUT1", "FP32", [4]))
    save(folder, "wrong_dims", AddSub(), "max_batch_size: 4\n" + wrong)
    extra = tensors_text("input", ("INPUT0", "FP32", [4]), ("INPUT1", "FP32", [4]), ("INPUT2", "FP32", [4]))
    save(folder, "wrong_name", AddSub(), "max_batch_size: 4\n" + extra)
    os.makedirs(os.path.join(version_of(folder, "no_model"), "model.savedmodel"))
    make_graph(folder)


def make_graph(folder):
    tensors = tensors_text("input", ("IN0", "INT32", [3]), ("IN1", "INT32", [3]))
    tensors += tensors_text("output", ("TOTAL", "INT32", [3]))
    with tf.Graph().as_default() as graph:
        left = tf.compat.v1.placeholder(tf.int32, [None, 3], name="IN0")
        right = tf.compat.v1.placeholder(tf.int32, [None, 3], name="IN1")
        start = tf.compat.v1.get_variable("start", initializer=100, use_resource=True)
        tf.add(left + right, start, name="TOTAL")
        tf.compat.v1.global_variables_initializer()
    config = 'platform: "tensorflow_graphdef"\nmax_batch_size: 4\n' + tensors
    config += 'parameters { key: "TF_INIT_OPS_FILE" value { string_value: "init_ops.json" } }\n'
    version = version_of(folder, "graph", config)
    with open(os.path.join(version, "model.graphdef"), "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    with open(os.path.join(version, "init_ops.json"), "w", encoding="utf-8") as file:
        json.dump({"init_ops": ["init"]}, file)


def check_a_saved_model_without_config(client, folder):
    client.load("add_sub")
    config = client.config("add_sub")
    assert (config["platform"], config["max_batch_size"]) == ("tensorflow_savedmodel", 4), config
    assert "dynamic_batching" in config, config
    inputs = [(tensor["name"], tensor["data_type"], [int(dim) for dim in tensor["dims"]]) for tensor in config["input"]]
    assert inputs == [("INPUT0", "TYPE_FP32", [4]), ("INPUT1", "TYPE_FP32", [4])], config
    left, right = np.arange(8, dtype=np.float32).reshape(2, 4), np.full((2, 4), 0.5, np.float32)
    got = client.infer("add_sub", {"INPUT0": left, "INPUT1": right})
    direct = tf.saved_model.load(os.path.join(folder, "add_sub", "1", "model.savedmodel")).signatures["serving_default"]
    want = direct(INPUT0=tf.constant(left), INPUT1=tf.constant(right))
    same(got["OUTPUT0"], want["OUTPUT0"].numpy())
    same(got["OUTPUT1"], want["OUTPUT1"].numpy())


def check_requests_that_wait_run_as_one_batch(client, folder):
    client.load("dense")
    rng = np.random.default_rng(5)
    rows = [rng.random((1 + number % 2, 6), np.float32) for number in range(4)]

    def call(x):
        # A row of one number has no dimensions of its own, so the config reshapes it.
        return lambda: client.infer("dense", {"x": x, "row": np.arange(len(x), dtype=np.int64).reshape(-1, 1)})

    direct = tf.saved_model.load(os.path.join(folder, "dense", "1", "model.savedmodel")).signatures["serving_default"]
    for x, got in zip(rows, at_once([call(x) for x in rows])):
        want = direct(x=tf.constant(x), row=tf.range(len(x), dtype=tf.int64))
        close(got["y"], want["y"].numpy())
        same(got["next"], want["next"].numpy().reshape(-1, 1))
    assert client.statistics("dense")["execution_count"] < 4, client.statistics("dense")


def check_texts_of_a_model_that_does_not_batch(client, _):
    client.load("texts")
    assert client.config("texts")["max_batch_size"] == 0
    words = np.array([[b"a", b"bc"], [b"", b"d"]], np.object_)
    got = client.infer("texts", {"words": words})
    same(got["upper"], np.array([[b"A", b"BC"], [b"", b"D"]], np.object_))
    same(got["joined"], np.array([b"abc", b"d"], np.object_))


def check_bfloat16(client, _):
    client.load("bits")
    x = np.array([1.5, -2, 0]).astype(tf.bfloat16.as_numpy_dtype)
    got = client.infer("bits", {"x": ("BF16", x)})["y"]
    assert got.view(tf.bfloat16.as_numpy_dtype).astype(float).tolist() == [3, -4, 0], got


def check_a_signature_by_parameter(client, _):
    client.load("negate")
    got = client.infer("negate", {"INPUT0": np.ones((1, 4), np.float32)})
    same(got["OUTPUT0"], -np.ones((1, 4), np.float32))
    refused(lambda: client.load("no_signature"), "unable to load model 'no_signature', expected 'nothing' signature")


def check_a_frozen_graph_with_init_operations(client, _):
    client.load("graph")
    got = client.infer("graph", {"IN0": np.array([[1, 2, 3]], np.int32), "IN1": np.array([[10, 10, 10]], np.int32)})
    same(got["TOTAL"], np.array([[111, 112, 113]], np.int32))


def check_configs_that_do_not_fit(client, _):
    start = "model 'wrong_dims', tensor 'INPUT0': the model expects 2 dimensions (shape [-1,4]) but the model "
    refused(lambda: client.load("wrong_dims"), start + "configuration specifies 2 dimensions (an initial batch")
    refused(lambda: client.load("wrong_name"), "configuration expects 3 inputs, model provides 2")


def check_files_that_are_no_models(client, _):
    refused(lambda: client.load("no_model"), "failed to load model 'no_model': ", "SavedModel")


def check_an_error_of_the_model(client, _):
    client.load("strict")
    x = np.ones((1, 2), np.float32)
    same(client.infer("strict", {"x": x})["y"], x)
    refused(lambda: client.infer("strict", {"x": -x}), "TensorFlow execute failure: ", status=500)


if __name__ == "__main__":
    run(sys.modules[__name__], make)
