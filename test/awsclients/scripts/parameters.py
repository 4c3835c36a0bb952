"""Each parameter that AWS documents for a call either acts or is refused by the service's own code.

What acts is what the simulation says (GET /_admin/served), and has a case in some script: a Go test counts them. Here
all others of botocore's models are sent, with a value that the model allows. Within launch templates, fleets and
launches each member of the model is sent too: what is accepted must have been read (GET /_admin/ignored).
"""

import datetime

import botocore.exceptions

import world
from sim import admin, client, method, name_on_wire

CODES = {"ec2": "UnknownParameter", "iam": "ValidationError", "sts": "ValidationError", "ssm": "ValidationException",
         "sqs": "AWS.SimpleQueueService.UnsupportedOperation", "pricing": "InvalidParameterException",
         "eks": "InvalidParameterException", "events": "ValidationException", "savingsplans": "ValidationException"}
# Calls and parameters that are newer than botocore 1.29.
NEWER_CALLS = {("arc-zonal-shift", "GetManagedResource"), ("arc-zonal-shift", "ListAutoshifts")}
NEWER = {"DescribeImages.MaxResults", "DescribeImages.NextToken", "DescribeSpotPriceHistory.AvailabilityZoneId",
         "CreateFleet.ReservedCapacityOptions", "ReceiveMessage.MessageSystemAttributeNames"}


def sample(shape, depth=0):
    """Returns a value that the model allows."""
    kind = shape.type_name
    if kind == "structure":
        names = shape.required_members or list(shape.members)[:1]
        return {name: sample(shape.members[name], depth + 1) for name in names}
    if kind == "list":
        return [sample(shape.member, depth + 1)]
    if kind == "map":
        return {"key": sample(shape.value, depth + 1)}
    if getattr(shape, "enum", None):
        return shape.enum[0]
    return {"string": "x" * max(int(shape.metadata.get("min", 3)), 3), "integer": int(shape.metadata.get("min", 1)) or 1,
            "long": 1, "boolean": True, "timestamp": datetime.datetime(2030, 1, 1), "double": 1.0, "float": 1.0, "blob": b"x"}[kind]


def top():
    """Sends every parameter that does not act."""
    for served in admin("served"):
        service, action = served["service"], served["action"]
        if (service, action) in NEWER_CALLS:
            continue
        made = client(service)
        operation = made.meta.service_model.operation_model(action)
        members = operation.input_shape.members if operation.input_shape else {}
        protocol = made.meta.service_model.metadata["protocol"]
        wire = {name_on_wire(protocol, name, member): name for name, member in members.items()}
        strange = set(served["params"]) - set(wire) - {n.split(".")[1] for n in NEWER if n.startswith(action + ".")}
        assert not strange, "%s %s accepts %s, which the model does not have" % (service, action, sorted(strange))
        required = {name: sample(members[name]) for name in (operation.input_shape.required_members if members else [])}
        for said, name in sorted(wire.items()):
            if said in served["params"]:
                continue
            try:
                method(made, action)(**dict(required, **{name: sample(members[name])}))
            except botocore.exceptions.ClientError as error:
                assert error.response["Error"]["Code"] == CODES[service], "%s of %s: %s" % (name, action, error)
                continue
            raise AssertionError("%s %s neither acts on %s nor refuses it" % (service, action, name))


def paths(shape, depth=0, seen=()):
    """Yields requests that have one member each, for each member at any depth."""
    for name, member in sorted(shape.members.items()):
        inner = member.member if member.type_name == "list" else member
        if inner.type_name == "structure" and inner.name not in seen and depth < 4:
            for value in paths(inner, depth + 1, seen + (inner.name,)):
                yield {name: [value] if member.type_name == "list" else value}
        else:
            yield {name: sample(member)}


def merged(base, change):
    """Returns a request with more members: structures are merged."""
    out = dict(base)
    for name, value in change.items():
        out[name] = merged(out[name], value) if isinstance(value, dict) and isinstance(out.get(name), dict) else value
    return out


def tried(call, **params):
    """Calls. An error has to be one of the request."""
    try:
        call(**params)
    except botocore.exceptions.ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        assert status in (400, 403, 412), "%s: %s" % (params, error)
    except botocore.exceptions.ParamValidationError:
        return  # a sample without its required neighbors


def nested():
    """Sends every member of the structures with which machines are launched."""
    ec2 = client("ec2")
    shapes = ec2.meta.service_model
    data = shapes.shape_for("RequestLaunchTemplateData")
    for number, change in enumerate(paths(data)):
        base = {"ImageId": world.image(), "InstanceType": "m5.large"}
        tried(ec2.create_launch_template, LaunchTemplateName="nested-%d" % number, LaunchTemplateData=merged(base, change))
    world.template("nodes", InstanceType="m5.large")
    subnet = world.subnets()["us-east-1a"]
    run = {"MinCount": 1, "MaxCount": 1, "ImageId": world.image(), "InstanceType": "m5.large", "SubnetId": subnet}
    for change in paths(shapes.operation_model("RunInstances").input_shape):
        tried(ec2.run_instances, **merged(run, change))
    fleet = {"Type": "instant", "TargetCapacitySpecification": {"TotalTargetCapacity": 1}, "LaunchTemplateConfigs": [
        {"LaunchTemplateSpecification": {"LaunchTemplateName": "nodes", "Version": "1"}, "Overrides": [{"SubnetId": subnet}]}]}
    for change in paths(shapes.operation_model("CreateFleet").input_shape):
        tried(ec2.create_fleet, **merged(fleet, change))
    for override in paths(shapes.shape_for("FleetLaunchTemplateOverridesRequest")):
        config = dict(fleet["LaunchTemplateConfigs"][0], Overrides=[dict({"SubnetId": subnet}, **override)])
        tried(ec2.create_fleet, **dict(fleet, LaunchTemplateConfigs=[config]))
    for target in paths(shapes.shape_for("TargetCapacitySpecificationRequest")):
        tried(ec2.create_fleet, **merged(fleet, {"TargetCapacitySpecification": target}))


top()
nested()
ignored = admin("ignored")
assert ignored == [], "accepted and not read: %s" % ignored
