"""Launch templates, fleets, launches, tags, status, termination."""

from sim import admin, client, equal, refused
import world

ec2 = client("ec2")


def templates():
    """A template is created once, checked, and deleted by name or ID."""
    data = {"ImageId": world.image(), "UserData": world.USER_DATA}
    made = ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData=data, ClientToken="first", VersionDescription="of a test",
                                      TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": "team", "Value": "a"}]}])["LaunchTemplate"]
    equal((made["LatestVersionNumber"], made["DefaultVersionNumber"], made["Tags"]), (1, 1, [{"Key": "team", "Value": "a"}]))
    refused("InvalidLaunchTemplateName.AlreadyExistsException", ec2.create_launch_template, LaunchTemplateName="nodes", LaunchTemplateData=data)
    refused("InvalidLaunchTemplateName.MalformedException", ec2.create_launch_template, LaunchTemplateName="no name", LaunchTemplateData=data)
    refused("InvalidUserData.Malformed", ec2.create_launch_template, LaunchTemplateName="other", LaunchTemplateData={"UserData": "%"})
    refused("UnknownParameter", ec2.create_launch_template, LaunchTemplateName="other", LaunchTemplateData={"KeyName": "key"})
    equal(ec2.describe_launch_templates(LaunchTemplateNames=["nodes"])["LaunchTemplates"], [made])
    equal(ec2.describe_launch_templates(LaunchTemplateIds=[made["LaunchTemplateId"]])["LaunchTemplates"], [made])
    refused("InvalidLaunchTemplateName.NotFoundException", ec2.describe_launch_templates, LaunchTemplateNames=["nothing"])
    world.template("by-id")
    gone = ec2.describe_launch_templates(LaunchTemplateNames=["by-id"])["LaunchTemplates"][0]["LaunchTemplateId"]
    equal(ec2.delete_launch_template(LaunchTemplateId=gone)["LaunchTemplate"]["LaunchTemplateName"], "by-id")
    refused("InvalidLaunchTemplateId.NotFound", ec2.delete_launch_template, LaunchTemplateId=gone)
    refused("InvalidParameterCombination", ec2.delete_launch_template, LaunchTemplateId=gone, LaunchTemplateName="nodes")


def fleets():
    """A fleet launches what there is; the rest is in its errors. A client token makes it once."""
    admin("drain", instanceType="m5.large", zone="us-east-1a", capacityType="on-demand", left=1)
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "b"}]}, {"ResourceType": "volume", "Tags": [{"Key": "team", "Value": "b"}]}]
    request = dict(ways=[("m5.large", "us-east-1a", {"Priority": 1.0}), ("c5.large", "us-east-1b", {"Priority": 2.0})], number=3,
                   ClientToken="a", OnDemandOptions={"AllocationStrategy": "prioritized"}, TagSpecifications=tags, Context="none")
    got = world.fleet("nodes", **request)
    equal([(part["InstanceType"], len(part["InstanceIds"])) for part in got["Instances"]], [("m5.large", 1), ("c5.large", 2)])
    equal([(e["ErrorCode"], e["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"]) for e in got["Errors"]],
          [("InsufficientInstanceCapacity", "m5.large")])
    equal(world.fleet("nodes", **request)["FleetId"], got["FleetId"], "the same token")
    refused("IdempotentParameterMismatch", world.fleet, name="nodes", **dict(request, number=2))
    admin("drain", instanceType="m5.large", zone="us-east-1a", capacityType="on-demand", left=0)
    none = world.fleet("nodes", [("m5.large", "us-east-1a")])
    equal((none["Instances"], [e["ErrorCode"] for e in none["Errors"]]), ([], ["InsufficientInstanceCapacity"]))
    wrong = world.fleet("nodes", [("m6g.large", "us-east-1b")])
    equal([e["ErrorCode"] for e in wrong["Errors"]], ["InvalidFleetConfiguration"], "the image is for x86_64")
    spot = world.fleet("nodes", [("c5.xlarge", "us-east-1b")], capacity="spot", SpotOptions={"AllocationStrategy": "price-capacity-optimized"})
    equal(spot["Instances"][0]["Lifecycle"], "spot")
    for change, code in (({"number": 0}, "InvalidParameterValue"), ({"ClientToken": "x" * 65}, "InvalidParameterValue"),
                         ({"name": "nothing"}, "InvalidLaunchTemplateName.NotFoundException"),
                         ({"ReplaceUnhealthyInstances": True}, "UnknownParameter")):
        refused(code, world.fleet, **dict({"name": "nodes", "ways": [("m5.large", "us-east-1a")]}, **change))
    return world.launched(got), world.launched(spot)[0]


def runs():
    """RunInstances launches; its parameters take precedence over the template's."""
    subnet = world.subnets()["us-east-1b"]
    request = dict(MinCount=1, MaxCount=2, SubnetId=subnet, InstanceType="c5.large", LaunchTemplate={"LaunchTemplateName": "nodes", "Version": "1"})
    got = ec2.run_instances(**request, Monitoring={"Enabled": True}, MetadataOptions={"HttpTokens": "required"}, ClientToken="run",
                            TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "r"}]}],
                            SecurityGroupIds=[world.group()], Placement={"Tenancy": "dedicated", "AvailabilityZone": "us-east-1b"},
                            MaintenanceOptions={"AutoRecovery": "disabled"}, EnclaveOptions={"Enabled": False},
                            CapacityReservationSpecification={"CapacityReservationPreference": "none"}, ImageId=world.image(),
                            UserData="#!/bin/bash", BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "Encrypted": True}}])
    first = got["Instances"][0]
    equal(len(got["Instances"]), 2)
    equal((first["Monitoring"]["State"], first["MetadataOptions"]["HttpTokens"], first["Placement"]["Tenancy"], first["ImageId"]),
          ("enabled", "required", "dedicated", world.image()))
    equal((first["MaintenanceOptions"]["AutoRecovery"], first["SecurityGroups"][0]["GroupId"], first["ClientToken"]),
          ("disabled", world.group(), "run"))
    again = dict(request, DryRun=True, NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [world.group()]}])
    refused("InvalidParameterCombination", ec2.run_instances, **again)
    del again["SubnetId"]
    refused("DryRunOperation", ec2.run_instances, **again, InstanceMarketOptions={"MarketType": "spot"})
    client("iam").create_instance_profile(InstanceProfileName="profile")
    client("iam").add_role_to_instance_profile(InstanceProfileName="profile", RoleName="KarpenterNodeRole-sandbox")
    profiled = ec2.run_instances(**dict(request, MaxCount=1), IamInstanceProfile={"Name": "profile"})["Instances"][0]
    equal(profiled["IamInstanceProfile"]["Arn"], "arn:aws:iam::111122223333:instance-profile/profile")
    refused("InvalidParameterValue", ec2.run_instances, **request, IamInstanceProfile={"Name": "nothing"})
    refused("InvalidSubnetID.NotFound", ec2.run_instances, **dict(request, SubnetId="subnet-0"))
    refused("MissingParameter", ec2.run_instances, **dict(request, MinCount=0))


def tags(ids):
    """Tags are set on all resources or none."""
    ec2.create_tags(Resources=ids, Tags=[{"Key": "Name", "Value": "n"}, {"Key": "team", "Value": "c"}])
    for part in ec2.describe_instances(InstanceIds=ids)["Reservations"]:
        shown = {t["Key"]: t["Value"] for t in part["Instances"][0]["Tags"]}
        equal((shown["Name"], shown["team"]), ("n", "c"))
    refused("InvalidInstanceID.NotFound", ec2.create_tags, Resources=[ids[0], "i-00000000000000000"], Tags=[{"Key": "x", "Value": "y"}])
    refused("InvalidParameterValue", ec2.create_tags, Resources=ids, Tags=[{"Key": "aws:x", "Value": "y"}])
    refused("TagLimitExceeded", ec2.create_tags, Resources=ids, Tags=[{"Key": "k%d" % k, "Value": ""} for k in range(50)])
    found = ec2.describe_instances(Filters=[{"Name": "tag:x", "Values": ["y"]}])["Reservations"]
    equal(found, [])


def status(ids):
    """The status is of running instances unless all are asked for; it has impairments and scheduled events."""
    world.await_state(ids, "running")
    admin("impair", id=ids[0], check="system")
    admin("schedule", id=ids[1], event="instance-retirement", at="2030-01-01T00:00:00Z")
    by_id = {s["InstanceId"]: s for s in ec2.describe_instance_status(InstanceIds=ids)["InstanceStatuses"]}
    equal(by_id[ids[0]]["SystemStatus"]["Status"], "impaired")
    assert by_id[ids[0]]["SystemStatus"]["Details"][0]["ImpairedSince"].year >= 2026
    equal(by_id[ids[1]]["SystemStatus"]["Status"], "ok")
    equal((by_id[ids[1]]["Events"][0]["Code"], by_id[ids[1]]["Events"][0]["NotBefore"].year), ("instance-retirement", 2030))
    refused("InvalidParameterCombination", ec2.describe_instance_status, InstanceIds=ids, MaxResults=5)
    refused("InvalidInstanceID.NotFound", ec2.describe_instance_status, InstanceIds=["i-00000000000000000"])


def volumes(ids):
    """The status of the volumes that are attached to running instances, by ID."""
    attached = ec2.describe_instances(InstanceIds=ids[2:3])["Reservations"][0]["Instances"][0]["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    admin("impair", id=ids[2], check="ebs")
    got = ec2.describe_volume_status(VolumeIds=[attached])["VolumeStatuses"]
    equal([(v["VolumeId"], v["VolumeStatus"]["Status"]) for v in got], [(attached, "impaired")])
    refused("InvalidVolume.NotFound", ec2.describe_volume_status, VolumeIds=["vol-00000000000000000"])
    refused("InvalidParameterCombination", ec2.describe_volume_status, VolumeIds=[attached], MaxResults=5)


def ends(ids, spot):
    """Termination takes a while, and is no error the second time. Of the ended ones less is shown."""
    got = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    equal({(i["PreviousState"]["Name"], i["CurrentState"]["Name"], i["CurrentState"]["Code"]) for i in got}, {("running", "shutting-down", 32)})
    world.await_state(ids, "terminated")
    got = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    equal({i["CurrentState"]["Name"] for i in got}, {"terminated"})
    gone = ec2.describe_instances(InstanceIds=ids[:1])["Reservations"][0]["Instances"][0]
    equal((gone["State"], gone["StateReason"]["Code"]), ({"Code": 48, "Name": "terminated"}, "Client.UserInitiatedShutdown"))
    equal([key for key in ("VpcId", "SubnetId", "PrivateIpAddress") if key in gone], [])
    equal(ec2.describe_instance_status(InstanceIds=ids)["InstanceStatuses"], [])
    equal(len(ec2.describe_instance_status(InstanceIds=ids, IncludeAllInstances=True)["InstanceStatuses"]), len(ids))
    refused("InvalidInstanceID.NotFound", ec2.terminate_instances, InstanceIds=[spot, "i-00000000000000000"])
    refused("InvalidInstanceID.Malformed", ec2.terminate_instances, InstanceIds=["nonsense"])
    assert world.state(spot) in ("pending", "running"), "one unknown ID fails the whole call"


def groups():
    """Placement groups and capacity reservations by name and ID."""
    admin("placement-group", group={"name": "near", "strategy": "cluster"})
    group = ec2.describe_placement_groups(GroupNames=["near"])["PlacementGroups"][0]
    equal(ec2.describe_placement_groups(GroupIds=[group["GroupId"]])["PlacementGroups"], [group])
    refused("InvalidPlacementGroup.Unknown", ec2.describe_placement_groups, GroupNames=["far"])
    made = admin("reserve", reservation={"instanceType": "m6i.large", "zone": "us-east-1a", "total": 2})["reservation"]
    got = ec2.describe_capacity_reservations(CapacityReservationIds=[made])["CapacityReservations"][0]
    equal((got["TotalInstanceCount"], got["AvailableInstanceCount"], got["State"]), (2, 2, "active"))
    refused("InvalidCapacityReservationId.NotFound", ec2.describe_capacity_reservations, CapacityReservationIds=["cr-00000000000000000"])
    world.launched(world.fleet("nodes", [("m6i.large", "us-east-1a")]))
    got = ec2.describe_capacity_reservations(CapacityReservationIds=[made])["CapacityReservations"][0]
    equal(got["AvailableInstanceCount"], 1, "an open reservation is used by a matching launch")


templates()
IDS, SPOT = fleets()
runs()
tags(IDS)
status(IDS)
volumes(IDS)
ends(IDS, SPOT)
groups()
