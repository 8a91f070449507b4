"""Has the tensors of an LLM that speaks all of the server's contract, and says which of them it got: a JSON object of its
inputs, in two tokens for each choice, the second choice a token later than the first. Finished by `length`."""
import json

import numpy as np
import triton_python_backend_utils as pb_utils

DOCUMENTS = ["chat_request", "embedding_request", "rerank_request", "tokenize_request", "sampling_parameters"]


def texts(values):
    return np.array([value.encode() for value in values], dtype=np.object_)


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self.answer(request.get_response_sender(), {t.name(): self.read(t) for t in request.inputs()})

    def read(self, tensor):
        values = tensor.as_numpy().reshape(-1).tolist()
        if tensor.name() == "prompt_token_ids":
            return values
        value = values[0].decode() if isinstance(values[0], bytes) else values[0]
        return json.loads(value) if tensor.name() in DOCUMENTS else value

    def answer(self, sender, given):
        document = self.document(given)
        if document is not None:
            sender.send(self.response({"text_output": texts([json.dumps(document)])}))
        else:
            self.generate(sender, given)
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def document(self, given):
        if "embedding_request" in given:
            asked = given["embedding_request"]["input"]
            asked = [asked] if isinstance(asked, str) or isinstance(asked[0], int) else asked
            return {"embeddings": [[len(text), 0.5] for text in asked], "prompt_tokens": len(asked)}
        if "rerank_request" in given:
            query, documents = given["rerank_request"]["query"], given["rerank_request"]["documents"]
            results = [{"index": i, "relevance_score": d.count(query)} for i, d in enumerate(documents)]
            return {"results": results, "prompt_tokens": 7}
        if "tokenize_request" in given:
            asked = given["tokenize_request"]
            if "tokens" in asked:
                return {"text": "".join(chr(token) for token in asked["tokens"])}
            tokens = [ord(char) for char in asked.get("text", json.dumps(asked))]
            pieces = {"pieces": [chr(token) for token in tokens]} if asked.get("with_pieces") else {}
            return {"tokens": tokens, "count": len(tokens), "max_model_len": 4096, **pieces}
        return None

    def generate(self, sender, given):
        n = given["sampling_parameters"].get("n", 1)
        said = self.said(given)
        middle = len(said) // 2
        # Each choice says its two tokens, one after the other where it is a stream.
        steps = [[said[:middle]] + [""] * (n - 1)]
        steps.append([said[middle:]] + [said[:middle]] * (n - 1))
        steps.append([""] + [said[middle:]] * (n - 1))
        if not given["stream"]:
            steps = [[said] * n]
        for i, step in enumerate(steps):
            is_last = i == len(steps) - 1
            finished = [is_last or (i == 1 and choice == 0) for choice in range(n)]
            sender.send(self.step(given, step, finished, is_last))

    def said(self, given):
        text = given.get("text_input") or (given.get("chat_request") or {}).get("messages", [{}])[-1].get("content", "")
        return text.split("say:", 1)[1].strip() if "say:" in text else json.dumps(given, sort_keys=True)

    def step(self, given, step, finished, is_last):
        outputs = {
            "text_output": texts(step),
            "finish_reason": texts(["length" if is_over else "None" for is_over in finished]),
            "num_input_tokens": np.array([11], np.uint32),
            "num_cached_tokens": np.array([4], np.uint32),
            "num_output_tokens": np.array([(1 if given["stream"] else 2) if text else 0 for text in step], np.uint32),
        }
        if given.get("return_logprobs"):
            outputs["logprobs"] = texts([self.logprobs(text) for text in step])
        if given.get("return_timings") and is_last:
            outputs["timings"] = texts([json.dumps({"prompt_ms": 1.5})])
        return self.response(outputs)

    def logprobs(self, text):
        if not text:
            return "[]"
        entry = {"token": text, "token_id": 5, "logprob": -0.5, "bytes": list(text.encode())}
        other = {"token": "other", "token_id": 6, "logprob": -1.5, "bytes": list(b"other")}
        return json.dumps([{**entry, "top": [entry, other]}])

    def response(self, outputs):
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, value) for name, value in outputs.items()])
