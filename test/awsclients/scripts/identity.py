"""IAM's roles and instance profiles, STS, EKS."""

from sim import client, equal, refused

iam, sts, eks = client("iam"), client("sts"), client("eks")
ROLE = "KarpenterNodeRole-sandbox"


def profiles():
    """A profile has at most one role, and goes when it has none."""
    tags = [{"Key": "team", "Value": "a"}]
    made = iam.create_instance_profile(InstanceProfileName="nodes", Path="/karpenter/us-east-1/", Tags=tags)["InstanceProfile"]
    equal(made["Arn"], "arn:aws:iam::111122223333:instance-profile/karpenter/us-east-1/nodes")
    assert made["InstanceProfileId"].startswith("AIPA"), made
    equal((made["Roles"], made["Tags"]), ([], tags))
    refused("EntityAlreadyExists", iam.create_instance_profile, InstanceProfileName="nodes")
    refused("ValidationError", iam.create_instance_profile, InstanceProfileName="not a name")
    refused("ValidationError", iam.create_instance_profile, InstanceProfileName="other", Path="no-slash")
    iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName=ROLE)
    refused("LimitExceeded", iam.add_role_to_instance_profile, InstanceProfileName="nodes", RoleName=ROLE)
    refused("NoSuchEntity", iam.add_role_to_instance_profile, InstanceProfileName="nodes", RoleName="nothing")
    iam.tag_instance_profile(InstanceProfileName="nodes", Tags=[{"Key": "team", "Value": "b"}, {"Key": "more", "Value": ""}])
    refused("InvalidInput", iam.tag_instance_profile, InstanceProfileName="nodes", Tags=[{"Key": "aws:x", "Value": "b"}])
    got = iam.get_instance_profile(InstanceProfileName="nodes")["InstanceProfile"]
    equal([r["RoleName"] for r in got["Roles"]], [ROLE])
    equal(sorted((t["Key"], t["Value"]) for t in got["Tags"]), [("more", ""), ("team", "b")])
    error = refused("DeleteConflict", iam.delete_instance_profile, InstanceProfileName="nodes")
    equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 409)
    iam.create_instance_profile(InstanceProfileName="elsewhere")
    listed = iam.list_instance_profiles(PathPrefix="/karpenter/")["InstanceProfiles"]
    equal([p["InstanceProfileName"] for p in listed], ["nodes"])
    equal("Tags" in listed[0] and listed[0]["Tags"] != [], False, "the list has no tags")
    first = iam.list_instance_profiles(MaxItems=1)
    equal((first["IsTruncated"], len(first["InstanceProfiles"])), (True, 1))
    second = iam.list_instance_profiles(MaxItems=1, Marker=first["Marker"])
    equal((second["IsTruncated"], [p["InstanceProfileName"] for p in second["InstanceProfiles"]]), (False, ["nodes"]))
    refused("ValidationError", iam.list_instance_profiles, MaxItems=1001)
    refused("NoSuchEntity", iam.remove_role_from_instance_profile, InstanceProfileName="nodes", RoleName="nothing")
    iam.remove_role_from_instance_profile(InstanceProfileName="nodes", RoleName=ROLE)
    iam.delete_instance_profile(InstanceProfileName="nodes")
    error = refused("NoSuchEntity", iam.get_instance_profile, InstanceProfileName="nodes")
    equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 404)


def roles():
    """The node role exists, with the policy by which EC2 assumes it."""
    role = iam.get_role(RoleName=ROLE)["Role"]
    equal(role["Arn"], "arn:aws:iam::111122223333:role/" + ROLE)
    equal(role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"], {"Service": "ec2.amazonaws.com"})
    refused("NoSuchEntity", iam.get_role, RoleName="nothing")


def account():
    """The caller, and the cluster."""
    equal(sts.get_caller_identity()["Account"], "111122223333")
    cluster = eks.describe_cluster(name="sandbox")["cluster"]
    equal(cluster["arn"], "arn:aws:eks:us-east-1:111122223333:cluster/sandbox")
    equal(cluster["status"], "ACTIVE")
    equal(cluster["kubernetesNetworkConfig"], {"ipFamily": "ipv4", "serviceIpv4Cidr": "10.100.0.0/16"})
    error = refused("ResourceNotFoundException", eks.describe_cluster, name="nothing")
    equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 404)


for case in (profiles, roles, account):
    case()
