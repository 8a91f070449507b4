"""Driver of grpc-reflection.test.ts: a client that knows no proto file of the server.

    reflection_client.py URL     URL serves the identity model echo
"""
import sys

import grpc
import numpy as np
from checks import run_checks
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

CHANNEL = grpc.insecure_channel(sys.argv[1])
DATABASE = ProtoReflectionDescriptorDatabase(CHANNEL)


def call(pool, method, **fields):
    """Calls a method of the inference service with what reflection tells about it."""
    found = pool.FindServiceByName("inference.GRPCInferenceService").FindMethodByName(method)
    request, response = GetMessageClass(found.input_type), GetMessageClass(found.output_type)
    path = f"/{found.containing_service.full_name}/{method}"
    rpc = CHANNEL.unary_unary(path, request.SerializeToString, response.FromString)
    return rpc(request(**fields), timeout=10)


def check_services():
    services = set(DATABASE.get_services())
    wanted = {"inference.GRPCInferenceService", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}
    assert wanted <= services, services


def check_symbols_resolve():
    pool = DescriptorPool(DATABASE)
    message = pool.FindMessageTypeByName("inference.ModelInferRequest")
    assert {"model_name", "inputs", "raw_input_contents"} <= set(message.fields_by_name), message.fields_by_name
    service = pool.FindServiceByName("inference.GRPCInferenceService")
    stream = service.FindMethodByName("ModelStreamInfer")
    assert stream.input_type is message and stream.client_streaming and stream.server_streaming
    assert "max_batch_size" in pool.FindMessageTypeByName("inference.ModelConfig").fields_by_name
    assert pool.FindEnumTypeByName("inference.DataType").values_by_name["TYPE_BF16"].number == 14


def check_files_resolve():
    name = DATABASE.FindFileContainingSymbol("inference.ModelInferRequest").name
    assert DATABASE.FindFileByName(name).package == "inference"
    for missing in (DATABASE.FindFileByName, DATABASE.FindFileContainingSymbol):
        try:
            missing("no.such.Thing")
            raise AssertionError("found what does not exist")
        except KeyError:
            pass


def check_calls_made_by_reflection_alone():
    pool = DescriptorPool(DATABASE)
    assert call(pool, "ServerMetadata").name
    assert call(pool, "ModelReady", name="echo").ready
    value = np.array([1, 2, 3], np.float32)
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 3]}
    answer = call(pool, "ModelInfer", model_name="echo", inputs=[tensor], raw_input_contents=[value.tobytes()])
    assert answer.raw_output_contents[0] == value.tobytes()
    typed = {**tensor, "contents": {"fp32_contents": value.tolist()}}
    answer = call(pool, "ModelInfer", model_name="echo", inputs=[typed])
    assert answer.raw_output_contents[0] == value.tobytes()


def check_health():
    health = health_pb2_grpc.HealthStub(CHANNEL)
    for service in ("", "inference.GRPCInferenceService"):
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING, (service, answer)


def check_unknown_method():
    rpc = CHANNEL.unary_unary("/inference.GRPCInferenceService/Nothing")
    try:
        rpc(b"", timeout=5)
        raise AssertionError("answered")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error


if __name__ == "__main__":
    run_checks(sys.modules[__name__])
