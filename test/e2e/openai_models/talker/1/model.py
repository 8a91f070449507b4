"""Says what the prompt tells it to say, a word at a time: everything between the last "say:" and "assistant:".

Words with a meaning: `wait:50` waits 50 ms, `fail!` ends with an error, `settings!` says the settings it was given,
`flood!` says a megabyte without a pause.
"""
import json
import re
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

SETTINGS = ["stream", "max_tokens", "temperature", "seed", "stop_words"]


def value_of(request, name):
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        return None
    values = [v.decode() if isinstance(v, bytes) else v for v in tensor.as_numpy().reshape(-1).tolist()]
    return values if name == "stop_words" else values[0]


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(request, request.get_response_sender())).start()

    def answer(self, request, sender):
        prompt = value_of(request, "text_input")
        limit = value_of(request, "max_tokens")
        said = re.sub(r"\s*assistant:\s*$", "", prompt.rsplit("say:", 1)[-1]).strip()
        words = re.findall(r"\s*\S+", said)
        words = words if limit is None else words[:limit]
        try:
            pieces = self.speak(request, sender, words)
            if value_of(request, "stream"):
                for piece in pieces:
                    sender.send(self.response(request, prompt, [piece]))
            else:
                sender.send(self.response(request, prompt, list(pieces)))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        except ValueError as error:
            response = pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error)))
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def speak(self, request, sender, words):
        for word in words:
            if sender.is_cancelled():
                return
            special = word.strip()
            if special.startswith("wait:"):
                time.sleep(int(special[5:]) / 1000)
            elif special == "fail!":
                raise ValueError("told to fail")
            elif special == "settings!":
                given = {name: value_of(request, name) for name in SETTINGS}
                yield json.dumps({name: value for name, value in given.items() if value is not None})
                continue
            elif special == "flood!":
                for _ in range(1000):
                    yield "x" * 1000
                continue
            yield word

    def response(self, request, prompt, pieces):
        text = pb_utils.Tensor("text_output", np.array(["".join(pieces).encode()], dtype=np.object_))
        outputs = [text]
        if value_of(request, "return_num_input_tokens"):
            outputs.append(pb_utils.Tensor("num_input_tokens", np.array([len(prompt.split())], np.uint32)))
        if value_of(request, "return_num_output_tokens"):
            outputs.append(pb_utils.Tensor("num_output_tokens", np.array([len(pieces)], np.uint32)))
        return pb_utils.InferenceResponse(outputs)
