"""Compares responses with botocore's models of the services, which are AWS's own.

botocore drops an element or a member that it does not know without a word, so a misspelled one would go unnoticed. Here
each response is read once more: every element and member has to exist in the model with the right type and at most
once, required members have to be there, and values of enumerations and times have to be valid.
"""

import base64
import datetime
import json
import os
import re
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))

# Members that AWS has added since botocore 1.29, as Structure.element. A Go test finds each in the AWS SDK for Go.
with open(os.path.join(HERE, "newer.txt"), encoding="utf-8") as lines:
    NEWER = {line.strip() for line in lines if line.strip() and not line.startswith("#")}

# Enumerations that AWS extends all the time.
OPEN = {"InstanceType", "ArchitectureType", "PlatformValues", "UsageClassType"}


class Mismatch(AssertionError):
    """A response that is not as the model says."""


def check(operation, status, body):
    """Checks the body of a response, bytes, of an operation's model."""
    protocol = operation.service_model.metadata["protocol"]
    if status >= 300:
        return check_error(protocol, body)
    if protocol in ("ec2", "query"):
        root = ElementTree.fromstring(body)
        namespace = operation.service_model.metadata["xmlNamespace"].rstrip("/") + "/"
        if root.tag != "{%s}%sResponse" % (namespace, operation.name):
            raise Mismatch("the root element is %s" % root.tag)
        if operation.output_shape is None:
            return None
        where = root
        if protocol == "query":
            wrapper = operation.output_shape.serialization["resultWrapper"]
            names = [bare(child) for child in root]
            if names != [wrapper, "ResponseMetadata"]:
                raise Mismatch("the elements of the response are %s" % names)
            where = root[0]
        return structure(operation.output_shape, where, operation.name, protocol)
    if operation.output_shape is not None:
        value(operation.output_shape, json.loads(body), operation.name)
    return None


def check_error(protocol, body):
    """Checks the form of an error."""
    if protocol in ("ec2", "query"):
        root = ElementTree.fromstring(body)
        wanted = {"ec2": ["Errors", "RequestID"], "query": ["Error", "RequestId"]}[protocol]
        if [bare(child) for child in root] != wanted:
            raise Mismatch("the elements of the error are %s, not %s" % ([bare(child) for child in root], wanted))
        error = root[0] if protocol == "query" else root[0][0]
        parts = {bare(child): child.text for child in error}
        if not parts.get("Code") or "Message" not in parts:
            raise Mismatch("the error has %s" % parts)
        return
    parts = json.loads(body)
    if set(parts) - {"__type", "message", "Message"} or not parts.get("__type"):
        raise Mismatch("the error has %s" % parts)


def bare(element):
    """Returns the name of an element without its namespace."""
    return element.tag.split("}")[-1]


def wire_name(name, member):
    """Returns the name of a structure's member in a response."""
    if member.type_name == "list" and member.serialization.get("flattened"):
        return member.member.serialization.get("name", member.serialization.get("name", name))
    return member.serialization.get("name", name)


def structure(shape, element, path, protocol):
    """Checks the elements of a structure."""
    members = {wire_name(name, member): member for name, member in shape.members.items()}
    if (element.text or "").strip():
        raise Mismatch("%s has the text %r beside its elements" % (path, element.text))
    seen = set()
    for child in element:
        name = bare(child)
        if name == "requestId" and path.count(".") == 0 and protocol == "ec2":
            continue
        if name not in members:
            if shape.name + "." + name in NEWER:
                continue
            raise Mismatch("%s.%s is not in the model (%s has %s)" % (path, name, shape.name, ", ".join(sorted(members))))
        member = members[name]
        flat = member.serialization.get("flattened")
        if name in seen and not flat:
            raise Mismatch("%s.%s is there twice" % (path, name))
        seen.add(name)
        inside(member, child, path + "." + name, protocol)
    for name in shape.required_members:
        if wire_name(name, shape.members[name]) not in seen and shape.members[name].type_name not in ("list", "map"):
            raise Mismatch("%s.%s is missing, the model requires it" % (path, name))


def inside(shape, element, path, protocol):
    """Checks the content of an element."""
    if shape.type_name == "structure":
        structure(shape, element, path, protocol)
    elif shape.type_name == "list":
        if shape.serialization.get("flattened"):
            inside(shape.member, element, path, protocol)
            return
        item = shape.member.serialization.get("name", "member")
        for child in element:
            if bare(child) != item:
                raise Mismatch("%s has the element %s, want %s" % (path, bare(child), item))
            inside(shape.member, child, path + "." + item, protocol)
    elif shape.type_name == "map":
        key, content = shape.key.serialization.get("name", "key"), shape.value.serialization.get("name", "value")
        if [bare(child) for child in element] != [key, content]:
            raise Mismatch("%s has %s, want %s and %s" % (path, [bare(child) for child in element], key, content))
        inside(shape.key, element[0], path + "." + key, protocol)
        inside(shape.value, element[1], path + "." + content, protocol)
    elif len(element):
        raise Mismatch("%s has elements, the model says %s" % (path, shape.type_name))
    else:
        scalar(shape, element.text or "", path)


def scalar(shape, text, path):
    """Checks the text of a value."""
    kind = shape.type_name
    if kind in ("integer", "long"):
        good = re.fullmatch(r"-?\d+", text)
    elif kind in ("float", "double"):
        good = re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", text)
    elif kind == "boolean":
        good = text in ("true", "false")
    elif kind == "timestamp":
        good = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", text)
        datetime.datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")
    elif kind == "blob":
        good = base64.b64decode(text, validate=True) is not None
    else:
        enum = getattr(shape, "enum", [])
        good = not enum or shape.name in OPEN or text in enum
    if not good:
        raise Mismatch("%s is %r, the model says %s (%s)" % (path, text, shape.name, kind))


JSON = {"string": str, "integer": int, "long": int, "boolean": bool, "timestamp": (int, float), "float": (int, float),
        "double": (int, float), "list": list, "map": dict, "structure": dict, "blob": str}


def value(shape, got, path):
    """Checks a JSON value."""
    if not isinstance(got, JSON[shape.type_name]) or isinstance(got, bool) != (shape.type_name == "boolean"):
        raise Mismatch("%s is %r, the model says %s" % (path, got, shape.type_name))
    if shape.type_name == "structure":
        members = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        for name, inner in got.items():
            if name not in members:
                if shape.name + "." + name in NEWER:
                    continue
                raise Mismatch("%s.%s is not in the model (%s has %s)" % (path, name, shape.name, ", ".join(sorted(members))))
            value(members[name], inner, path + "." + name)
        for name in shape.required_members:
            if name not in got:
                raise Mismatch("%s.%s is missing, the model requires it" % (path, name))
    elif shape.type_name == "list":
        for inner in got:
            value(shape.member, inner, path + "[]")
    elif shape.type_name == "map":
        for inner in got.values():
            value(shape.value, inner, path + "{}")
    elif shape.type_name == "string" and getattr(shape, "enum", None) and shape.name not in OPEN and got not in shape.enum:
        raise Mismatch("%s is %r, the model says %s" % (path, got, ", ".join(shape.enum)))
