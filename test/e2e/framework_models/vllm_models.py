"""Small language models with random weights, and checks that the server answers what transformers computes with them.
Driver of frameworks.test.ts; see v2_client.run for its arguments. Each load starts an engine, which takes a while, so
there are two models."""
import glob
import json
import os
import re
import signal
import sys
import time
import urllib.request

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from v2_client import at_once, close, refused, run, version_of

WIDTH = 64
CHAT = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:"
PROMPT = "The quick brown fox"
# vLLM wants this share of the machine's memory free, and nine tenths unless told; a page cache is not free to it.
MEMORY = {"gpu_memory_utilization": 0.5}
ENGINE = {"max_model_len": 2048, "enforce_eager": True, "dtype": "float32", "disable_log_requests": True, **MEMORY}
KIND = "instance_group [ { count: 1 kind: KIND_MODEL } ]\n"


def parameter(name):
    return 'parameters { key: "%s" value { string_value: "true" } }\n' % name


def save_model(folder):
    """One token per byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate([*alphabet, "<s>", "</s>"])}
    bytes_alone = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    bytes_alone.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_alone, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=WIDTH,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        # Wide weights make the best token clear, so that rounding cannot change it.
        initializer_range=0.5,
        bos_token_id=256,
        eos_token_id=257,
        tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(folder)


def save_lora(folder):
    os.makedirs(folder)
    rank = 8
    weights = {}
    torch.manual_seed(11)
    for layer in range(2):
        name = "base_model.model.model.layers.%d.self_attn.q_proj.lora_%%s.weight" % layer
        weights[name % "A"] = torch.randn(rank, WIDTH)
        weights[name % "B"] = torch.randn(WIDTH, rank)
    save_file(weights, os.path.join(folder, "adapter_model.safetensors"))
    about = {"peft_type": "LORA", "r": rank, "lora_alpha": 64, "target_modules": ["q_proj"], "bias": "none"}
    write_json(os.path.join(folder, "adapter_config.json"), {**about, "task_type": "CAUSAL_LM"})


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def make(folder):
    version = version_of(folder, "tiny", 'backend: "vllm"\n' + KIND + parameter("REPORT_CUSTOM_METRICS"))
    save_model(os.path.join(version, "weights"))
    save_lora(os.path.join(version, "adapters", "odd"))
    lora = {"enable_lora": "true", "max_lora_rank": 8}
    # Weights are found in the version directory.
    write_json(os.path.join(version, "model.json"), {**ENGINE, **lora, "model": "weights"})
    write_json(os.path.join(version, "multi_lora.json"), {"odd": "adapters/odd"})
    config = 'backend: "vllm"\n' + KIND + parameter("ENABLE_VLLM_HEALTH_CHECK")
    embed = version_of(folder, "embed", config)
    pooling = {"runner": "pooling", "convert": "embed", "model": os.path.join(version, "weights")}
    write_json(os.path.join(embed, "model.json"), {**ENGINE, **pooling})
    version_of(folder, "no_file", 'backend: "vllm"\n' + KIND)
    no_list = version_of(folder, "no_list", 'backend: "vllm"\n' + KIND)
    write_json(os.path.join(no_list, "model.json"), {"model": "nothing", "enable_lora": True})
    coupled = version_of(folder, "coupled", 'backend: "vllm"\nmodel_transaction_policy { decoupled: false }\n' + KIND)
    write_json(os.path.join(coupled, "model.json"), {"model": "nothing"})


def generate(client, values, sampling=None, model="tiny"):
    body = dict(values)
    if sampling is not None:
        body["sampling_parameters"] = json.dumps(sampling)
    return client.json("/models/%s/generate" % model, body)


def stream(client, values, sampling):
    body = {**values, "stream": True, "sampling_parameters": json.dumps(sampling)}
    _, text = client.call("/models/tiny/generate_stream", body)
    return [json.loads(line[len("data: ") :]) for line in text.decode().split("\n") if line.startswith("data: ")]


def weights_of(folder):
    return os.path.join(folder, "tiny", "1", "weights")


def right_tokens(folder, text, count):
    """What transformers says, greedily."""
    model = LlamaForCausalLM.from_pretrained(weights_of(folder), torch_dtype=torch.float32)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(weights_of(folder))
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    full = model.generate(ids, max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=257)
    return full[0, ids.shape[1] :].tolist(), tokenizer


def check_wrong_models(client, folder):
    refused(lambda: client.load("no_file"), "'model.json' containing vllm engine args must be provided in '")
    refused(lambda: client.load("no_list"), "Triton backend cannot find ", "multi_lora.json.")
    refused(lambda: client.load("coupled"), "decoupled")


def check_greedy_text_is_that_of_transformers(client, folder):
    client.load("tiny")
    want, tokenizer = right_tokens(folder, PROMPT, 24)
    greedy = {"temperature": 0, "max_tokens": 24, "ignore_eos": True, "logprobs": 1}
    flags = {"return_%s" % name: True for name in ("finish_reason", "logprobs", "num_input_tokens", "num_output_tokens")}
    body = {"text_input": PROMPT, "exclude_input_in_output": True, **flags}
    got = generate(client, body, greedy)
    tokens = [int(next(iter(position))) for position in json.loads(got["logprobs"])]
    assert tokens == want, (tokens, want)
    assert got["text_output"] == tokenizer.decode(want), got
    assert (got["finish_reason"], got["num_input_tokens"], got["num_output_tokens"]) == ("length", len(PROMPT), 24), got
    # Without the tensor the parameters of the request are used, and the prompt comes first.
    plain = {"temperature": "0", "max_tokens": "24", "ignore_eos": "true", "stream": False}
    again = generate(client, {"text_input": PROMPT, "parameters": plain})
    assert again["text_output"] == PROMPT + got["text_output"], again
    ids = {"prompt_token_ids": tokenizer(PROMPT)["input_ids"], "exclude_input_in_output": True}
    assert generate(client, ids, greedy)["text_output"] == got["text_output"]
    parts = stream(client, {"text_input": PROMPT, "return_num_output_tokens": True}, greedy)
    assert len(parts) > 1
    assert "".join(part["text_output"] for part in parts) == got["text_output"], parts
    assert sum(part["num_output_tokens"] for part in parts) == 24


def check_several_choices_keep_their_places(client, folder):
    sampling = {"n": 3, "seed": 5, "max_tokens": 12, "ignore_eos": True}
    flags = {"exclude_input_in_output": True, "return_finish_reason": True}
    whole = generate(client, {"text_input": PROMPT, **flags}, sampling)["text_output"]
    parts = stream(client, {"text_input": PROMPT, **flags}, sampling)
    assert all(len(part["text_output"]) == 3 for part in parts), parts
    assert ["".join(part["text_output"][at] for part in parts) for at in range(3)] == whole
    assert len(set(whole)) == 3 and parts[-1]["finish_reason"] == ["length"] * 3


def check_chat_and_structured_outputs(client, folder):
    greedy = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    got = generate(client, {"chat_request": json.dumps(chat), "exclude_input_in_output": True}, greedy)
    same = generate(client, {"text_input": "user: hi\nassistant:", "exclude_input_in_output": True}, greedy)
    assert got["text_output"] == same["text_output"]
    choice = {"structured_outputs": json.dumps({"choice": ["yes", "no"]}), "temperature": 0}
    assert generate(client, {"text_input": "?", "exclude_input_in_output": True}, choice)["text_output"] in ("yes", "no")
    refused(lambda: generate(client, {"text_input": "x", "chat_request": "{}"}), "exactly one of")


def check_lora_by_name(client, folder):
    greedy = {"temperature": 0, "max_tokens": 16, "ignore_eos": True}
    plain = generate(client, {"text_input": PROMPT}, greedy)["text_output"]
    odd = generate(client, {"text_input": PROMPT}, {**greedy, "lora_name": "odd"})["text_output"]
    assert odd.startswith(PROMPT) and odd != plain, odd
    error = refused(lambda: generate(client, {"text_input": "x"}, {"lora_name": "even"}))
    assert error.message == "LoRA even is not supported, we currently support ['odd']", error


def check_errors_in_words(client, folder):
    error = refused(lambda: generate(client, {"text_input": "x", "stream": True, "exclude_input_in_output": False}))
    want = "Error generating stream: When streaming, `exclude_input_in_output` = False is not allowed."
    assert error.message == want, error
    refused(lambda: generate(client, {"text_input": "x"}, {"wrong": 1}), "Error generating stream: ", "'wrong'")
    refused(lambda: generate(client, {"text_input": "x"}, {"temperature": -1}), "Error generating stream: ", "temperature")
    embedding = {"text_input": "x", "embedding_request": json.dumps({"input": "x"})}
    error = refused(lambda: generate(client, embedding))
    assert error.message == "Error generating stream: Model tiny does not support 'embed' request", error


def check_sixteen_at_once_equal_one_alone(client, folder):
    greedy = {"temperature": 0, "max_tokens": 16, "ignore_eos": True}
    texts = ["%s %d" % (PROMPT, number) for number in range(16)]
    alone = [generate(client, {"text_input": text}, greedy)["text_output"] for text in texts[:4]]
    calls = [lambda text=text: generate(client, {"text_input": text}, greedy)["text_output"] for text in texts]
    together = at_once(calls)
    assert together[:4] == alone
    assert all(got.startswith(text) for got, text in zip(together, texts))


def check_a_client_that_leaves_is_noticed(client, folder):
    count = 2000
    before = tokens_so_far()
    body = {"text_input": PROMPT, "stream": True}
    body["sampling_parameters"] = json.dumps({"max_tokens": count, "ignore_eos": True})
    url = "http://%s/v2/models/tiny/generate_stream" % sys.argv[2]
    answer = urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=60)
    answer.readline()
    answer.close()
    end = time.monotonic() + 30
    seen = -1
    while tokens_so_far() != seen:
        assert time.monotonic() < end, "the engine goes on"
        seen = tokens_so_far()
        time.sleep(1)
    assert before < seen < before + count, (before, seen)


def tokens_so_far():
    return float(re.search(r'^vllm:generation_tokens_total\{.*?\} (\S+)$', metrics_text(), re.M).group(1))


def check_metrics(client, folder):
    text = metrics_text()
    assert 'vllm:generation_tokens_total{model="tiny",version="1"}' in text, text
    assert 'vllm:request_params_n_bucket{model="tiny",version="1",le="20"}' in text, text


def metrics_text():
    with urllib.request.urlopen("http://%s/metrics" % sys.argv[4], timeout=30) as answer:
        return answer.read().decode()


def check_a_dead_engine_costs_its_requests_alone(client, folder):
    assert kill_engines() == 1
    # Until its death is known requests fail; then a new engine takes them.
    end = time.monotonic() + 120
    while True:
        try:
            got = generate(client, {"text_input": PROMPT}, {"max_tokens": 2})
            break
        except Exception as error:
            assert time.monotonic() < end, error
            time.sleep(0.5)
    assert got["text_output"].startswith(PROMPT)


def kill_engines():
    """Those of the server that this test started: engine, host, server, test."""
    killed = 0
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as file:
                is_engine = file.read().startswith(b"VLLM::EngineCore")
            is_ours = is_engine and parent_of(parent_of(parent_of(pid))) == os.getppid()
        except OSError:
            continue
        if is_ours:
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


def parent_of(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return int(re.search(r"^PPid:\s+(\d+)", file.read(), re.M).group(1))


def check_embeddings(client, folder):
    client.unload("tiny")
    client.load("embed")
    body = {"input": ["one", "two", [1, 2, 3]]}
    got = generate(client, {"embedding_request": json.dumps(body), "return_num_input_tokens": True}, model="embed")
    answer = json.loads(got["text_output"])
    vectors = torch.tensor(answer["embeddings"])
    assert vectors.shape == (3, WIDTH) and answer["prompt_tokens"] == got["num_input_tokens"] == 9, answer
    model = LlamaForCausalLM.from_pretrained(weights_of(folder), torch_dtype=torch.float32)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(weights_of(folder))
    states = model.model(tokenizer("one", return_tensors="pt")["input_ids"]).last_hidden_state[0, -1]
    want = torch.nn.functional.normalize(states, dim=0).detach()
    close(vectors[0].numpy(), want.numpy())
    error = refused(lambda: generate(client, {"text_input": "x"}, model="embed"))
    assert error.message == "Error generating stream: Model embed does not support 'generate' request", error


def check_an_unhealthy_engine_is_unloaded(client, folder):
    assert kill_engines() == 1
    time.sleep(2)
    body = {"embedding_request": json.dumps({"input": "x"})}
    error = refused(lambda: generate(client, body, model="embed"))
    assert error.message == "Model is unavailable due to unhealthy vLLM engine", error
    end = time.monotonic() + 20
    while any(row["name"] == "embed" and row.get("state") == "READY" for row in client.json("/repository/index", {})):
        assert time.monotonic() < end, "the model is still there"
        time.sleep(0.2)


run(sys.modules[__name__], make)
