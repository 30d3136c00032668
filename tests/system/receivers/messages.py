# SPDX-License-Identifier: Apache-2.0
"""Message classes made from proto/*.proto when they are needed, and strict parsing."""

import functools
import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

ROOT = pathlib.Path(__file__).resolve().parents[3]


class BadMessage(Exception):
    """Bytes that are not such a message, or have fields that it does not have."""


@functools.cache
def message_class(proto, name):
    """The class of message NAME ("push.v1.PushRequest") of proto/PROTO.proto."""
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory) / "set"
        subprocess.run(["protoc", f"--proto_path={ROOT}", f"--descriptor_set_out={output}",
                        str(ROOT / "proto" / f"{proto}.proto")], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(name))


def parse(proto, name, data):
    try:
        parsed = message_class(proto, name).FromString(data)
    except message.DecodeError as error:
        raise BadMessage(f"{name}: {error}") from error
    size = parsed.ByteSize()
    parsed.DiscardUnknownFields()
    if parsed.ByteSize() != size:
        raise BadMessage(f"{name}: unknown fields")
    return parsed
