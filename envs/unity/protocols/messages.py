"""The messages of ML-Agents' present protocol, as its .proto files number them (communication version 1.5.0).

Public description: the package com.unity.ml-agents of Unity, and PyPI's mlagents-envs 1.1.0. Fields that are
not read here are left out: a reader of protocol buffers passes over what it does not know.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

SERVICE = "communicator_objects.UnityToExternalProto"
"""Name of the gRPC service. It has one method, Exchange: a Message for a Message."""

_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Message": {"header": (1, "Header"), "unity_output": (2, "Output"), "unity_input": (3, "Input")},
    "Header": {"status": (1, "int32")},
    # what the player says
    "Output": {"rl_output": (1, "Infos"), "initialization": (2, "Greeting")},
    "Greeting": {
        "communication_version": (2, "string"),
        "brain_parameters": (5, "Behavior*"),
        "package_version": (7, "string"),
    },
    "Behavior": {
        "old_action_sizes": (3, "int32*"),  # of versions before 1.3, which had one kind of actions
        "old_action_kind": (6, "int32"),  # 1: continuous
        "name": (7, "string"),
        "actions": (9, "Actions"),
    },
    "Actions": {"continuous": (1, "int32"), "discrete": (2, "int32"), "branches": (3, "int32*")},
    "Infos": {"of_behavior": (2, "InfosOf*")},
    "InfosOf": {"key": (1, "string"), "value": (2, "InfoList")},  # an entry of a map
    "InfoList": {"value": (1, "Info*")},
    "Info": {
        "reward": (7, "float"),
        "done": (8, "bool"),
        "max_step_reached": (9, "bool"),
        "id": (10, "int32"),
        "action_mask": (11, "bool*"),
        "observations": (13, "Observation*"),
        "group_reward": (15, "float"),
    },
    "Observation": {
        "shape": (1, "int32*"),
        "compression": (2, "int32"),  # 1: PNG
        "compressed": (3, "bytes"),
        "floats": (4, "Floats"),
        "channel_mapping": (5, "int32*"),
    },
    "Floats": {"data": (1, "float*")},
    # what it is told
    "Input": {"rl_input": (1, "Command"), "initialization": (2, "Welcome")},
    "Welcome": {
        "seed": (1, "int32"),
        "communication_version": (2, "string"),
        "package_version": (3, "string"),
        "capabilities": (4, "Capabilities"),
        "num_areas": (5, "int32"),
    },
    "Capabilities": {
        "base": (1, "bool"),
        "concatenated_png": (2, "bool"),
        "channel_mapping": (3, "bool"),
        "hybrid_actions": (4, "bool"),
        "variable_length_observation": (6, "bool"),
        "multi_agent_groups": (7, "bool"),
    },
    "Command": {"of_behavior": (1, "ChoicesOf*"), "command": (4, "int32"), "side_channel": (5, "bytes")},
    "ChoicesOf": {"key": (1, "string"), "value": (2, "ChoiceList")},  # an entry of a map
    "ChoiceList": {"value": (1, "Choice*")},
    "Choice": {"old_action": (1, "float*"), "continuous": (6, "float*"), "discrete": (7, "int32*")},
}
"""Message -> field -> number and type; * stands where there may be several."""
_TYPES = {
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "int32": FieldDescriptorProto.TYPE_INT32,  # enums too: both are varints
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}


def _described() -> DescriptorPool:
    file = FileDescriptorProto(name="mlagents.proto", package="mlagents", syntax="proto3")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, said) in fields.items():
            field = described.field.add(name=name, number=number)
            kind = said.rstrip("*")
            field.label = field.LABEL_REPEATED if said.endswith("*") else field.LABEL_OPTIONAL
            if kind in _TYPES:
                field.type = _TYPES[kind]
            else:
                field.type, field.type_name = field.TYPE_MESSAGE, f".mlagents.{kind}"
    pool = DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _described()
Message: Any = GetMessageClass(_POOL.FindMessageTypeByName("mlagents.Message"))
"""What goes either way."""
Choice: Any = GetMessageClass(_POOL.FindMessageTypeByName("mlagents.Choice"))
"""The action of one body."""
