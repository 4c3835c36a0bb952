"""Machines and templates for cases."""

import base64

from sim import await_, client

ec2, ssm = client("ec2"), client("ssm")

USER_DATA = base64.b64encode(b"#!/bin/bash\necho hello").decode()


def image(arch="x86_64"):
    """Returns the newest AL2023 image of Kubernetes 1.36."""
    name = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/%s/standard/recommended/image_id" % arch
    return ssm.get_parameter(Name=name)["Parameter"]["Value"]


def subnets():
    """Returns the private subnets of the cluster by zone."""
    found = ec2.describe_subnets(Filters=[{"Name": "tag:karpenter.sh/discovery", "Values": ["sandbox"]}])["Subnets"]
    return {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in found}


def group():
    """Returns the security group of the cluster."""
    found = ec2.describe_security_groups(Filters=[{"Name": "tag:karpenter.sh/discovery", "Values": ["sandbox"]}])
    return found["SecurityGroups"][0]["GroupId"]


def template(name, **data):
    """Creates a launch template."""
    data.setdefault("ImageId", image())
    return ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)["LaunchTemplate"]


def fleet(name, ways, number=1, capacity="on-demand", **more):
    """Creates an instant fleet; a way is a type and a zone, with more members of an override if it has a third part."""
    nets = subnets()
    overrides = [dict({"InstanceType": way[0], "SubnetId": nets[way[1]]}, **(way[2] if len(way) > 2 else {})) for way in ways]
    config = {"LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"}, "Overrides": overrides}
    return ec2.create_fleet(Type="instant", LaunchTemplateConfigs=[config], TargetCapacitySpecification={
        "TotalTargetCapacity": number, "DefaultTargetCapacityType": capacity}, **more)


def launched(answer):
    """Returns the IDs of a fleet's instances."""
    return [i for part in answer["Instances"] for i in part["InstanceIds"]]


def state(instance):
    """Returns the state of an instance."""
    return ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["State"]["Name"]


def await_state(ids, wanted):
    """Waits until all instances have a state."""
    await_("instances are " + wanted, lambda: all(state(i) == wanted for i in ids))


def full():
    """Launches machines that differ in what filters select by, and returns their IDs."""
    template("plain", UserData=USER_DATA, TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "a"}]}])
    template("rich", UserData=USER_DATA, Monitoring={"Enabled": True}, MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
             NetworkInterfaces=[{"DeviceIndex": 0, "NetworkCardIndex": 0, "Groups": [group()], "Description": "first"},
                                {"DeviceIndex": 1, "NetworkCardIndex": 0, "Groups": [group()], "Description": "second",
                                 "DeleteOnTermination": False}])
    ids = launched(fleet("plain", [("m5.large", "us-east-1a")], 2, ClientToken="filters"))
    ids += launched(fleet("rich", [("m6g.large", "us-east-1b", {"ImageId": image("arm64")})]))
    ids += launched(fleet("plain", [("c5.xlarge", "us-east-1b")], 1, "spot"))
    await_state(ids, "running")
    return ids
