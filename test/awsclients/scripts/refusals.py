"""Errors have the form of the service's protocol: code, message, request ID and status; dry runs are refused as AWS does."""

import datetime


import botocore.exceptions

import world
from sim import admin, client, equal, method, refused

# What a call is refused by without permission, and when there are too many calls.
DENIED = {"ec2": ("UnauthorizedOperation", 403), "iam": ("AccessDenied", 403), "sts": ("AccessDenied", 403),
          "ssm": ("AccessDeniedException", 400), "events": ("AccessDeniedException", 400),
          "eks": ("AccessDeniedException", 403), "pricing": ("AccessDeniedException", 400), "sqs": ("AccessDenied", 403)}
THROTTLED = {"ec2": ("RequestLimitExceeded", 503), "iam": ("Throttling", 400), "sts": ("Throttling", 400),
             "ssm": ("ThrottlingException", 400), "events": ("ThrottlingException", 400),
             "eks": ("ThrottlingException", 429), "pricing": ("ThrottlingException", 400), "sqs": ("RequestThrottled", 403)}
EXPIRED = {"ec2": ("RequestExpired", 400), "iam": ("ExpiredToken", 403), "sts": ("ExpiredToken", 403), "ssm": ("ExpiredTokenException", 400),
           "eks": ("ExpiredTokenException", 403), "pricing": ("ExpiredTokenException", 400), "sqs": ("ExpiredToken", 403)}


def required(made, action):
    """Returns values for the required parameters of a call."""
    shape = made.meta.service_model.operation_model(action).input_shape
    return {name: sample(shape.members[name]) for name in shape.required_members} if shape else {}


def sample(shape):
    """Returns a value that the model allows."""
    kind = shape.type_name
    if kind == "structure":
        return {name: sample(shape.members[name]) for name in shape.required_members}
    return {"list": lambda: [sample(shape.member)], "map": dict, "integer": lambda: 1, "boolean": lambda: True,
            "timestamp": datetime.datetime.now}.get(kind, lambda: shape.enum[0] if getattr(shape, "enum", None) else "xxxx")()


def every(kind, codes, **fault):
    """Checks the error of each call under a fault."""
    for served in admin("served"):
        service, action = served["service"], served["action"]
        if service not in codes:
            continue
        number = admin("fault", **dict(fault, kind=kind, service=service, action=action))["fault"]
        made = client(service)
        if kind == "throttle":  # the first call takes the only token of the bucket
            try:
                method(made, action)(**required(made, action))
            except botocore.exceptions.ClientError:
                pass
        error = refused(codes[service][0], method(made, action), **required(made, action))
        equal(error.response["ResponseMetadata"]["HTTPStatusCode"], codes[service][1], "%s of %s" % (kind, action))
        assert error.response["Error"]["Message"], "no message: %s" % error.response
        admin("clear", number=number)


def dry_runs():
    """A dry run that would succeed is refused by DryRunOperation with 412, and nothing happens."""
    ec2 = client("ec2")
    world.template("nodes", InstanceType="m5.large")
    subnet = world.subnets()["us-east-1a"]
    machine = world.launched(world.fleet("nodes", [("m5.large", "us-east-1a")]))[0]
    config = {"LaunchTemplateSpecification": {"LaunchTemplateName": "nodes", "Version": "1"}, "Overrides": [{"SubnetId": subnet}]}
    filled = {
        "CreateLaunchTemplate": {"LaunchTemplateName": "other", "LaunchTemplateData": {"InstanceType": "m5.large"}},
        "DeleteLaunchTemplate": {"LaunchTemplateName": "nodes"}, "TerminateInstances": {"InstanceIds": [machine]},
        "CreateFleet": {"Type": "instant", "TargetCapacitySpecification": {"TotalTargetCapacity": 1}, "LaunchTemplateConfigs": [config]},
        "RunInstances": {"MinCount": 1, "MaxCount": 1, "LaunchTemplate": {"LaunchTemplateName": "nodes"}, "ImageId": world.image(),
                         "SubnetId": subnet},
        "CreateTags": {"Resources": [machine], "Tags": [{"Key": "a", "Value": "b"}]},
    }
    for served in admin("served"):
        if "DryRun" in served["params"]:
            action = served["action"]
            error = refused("DryRunOperation", method(ec2, action), DryRun=True, **filled.get(action, {}))
            equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 412, action)
    equal(len(ec2.describe_launch_templates()["LaunchTemplates"]), 1)
    equal(len(ec2.describe_instances()["Reservations"]), 1)
    assert world.state(machine) in ("pending", "running")


def region():
    """A request that is signed for another region is refused."""
    import boto3  # pylint: disable=import-outside-toplevel
    from sim import URL  # pylint: disable=import-outside-toplevel
    far = boto3.client("ec2", endpoint_url=URL, region_name="eu-north-1", aws_access_key_id="AKIDBOTO", aws_secret_access_key="secret")
    try:
        far.describe_subnets()
    except botocore.exceptions.ClientError as error:
        equal(error.response["Error"]["Code"], "AuthFailure")
        equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 401)
    else:
        raise AssertionError("a request for another region was served")


def expired():
    """Temporary credentials that have expired are refused by the code that SDKs know."""
    admin("expire", accessKey="AKIDBOTO")
    for service, action in (("ec2", "DescribeSubnets"), ("iam", "ListInstanceProfiles"), ("sts", "GetCallerIdentity"),
                            ("ssm", "GetParameter"), ("eks", "DescribeCluster"), ("sqs", "GetQueueUrl"), ("pricing", "GetProducts")):
        made = client(service)
        error = refused(EXPIRED[service][0], method(made, action), **required(made, action))
        equal(error.response["ResponseMetadata"]["HTTPStatusCode"], EXPIRED[service][1], service)
    admin("renew", accessKey="AKIDBOTO")


every("deny", DENIED)
every("throttle", THROTTLED)
dry_runs()
region()
expired()
