"""What a provider discovers: zones, subnets, groups, images, types, offerings, spot prices, parameters, products."""

import datetime
import json

from sim import admin, client, equal, refused
import world

ec2, ssm, pricing = client("ec2"), client("ssm"), client("pricing")


def zones():
    """Zones by name and ID."""
    every = ec2.describe_availability_zones()["AvailabilityZones"]
    equal(sorted(z["ZoneName"] for z in every), ["us-east-1" + letter for letter in "abcdef"])
    first = ec2.describe_availability_zones(ZoneNames=["us-east-1a"], AllAvailabilityZones=True)["AvailabilityZones"][0]
    same = ec2.describe_availability_zones(ZoneIds=[first["ZoneId"]])["AvailabilityZones"]
    equal([z["ZoneName"] for z in same], ["us-east-1a"])
    refused("InvalidParameterValue", ec2.describe_availability_zones, ZoneNames=["us-east-1z"])


def networks():
    """Subnets and groups by ID and name."""
    every = ec2.describe_subnets()["Subnets"]
    one = ec2.describe_subnets(SubnetIds=[every[0]["SubnetId"]])["Subnets"]
    equal(one, every[:1])
    equal(one[0]["AvailableIpAddressCount"], 8187, "five addresses of a /19 are reserved")
    refused("InvalidSubnetID.NotFound", ec2.describe_subnets, SubnetIds=["subnet-00000000000000000"])
    refused("InvalidParameterValue", ec2.describe_subnets, MaxResults=4 + 997)
    groups = ec2.describe_security_groups()["SecurityGroups"]
    equal(ec2.describe_security_groups(GroupIds=[groups[0]["GroupId"]])["SecurityGroups"], groups[:1])
    named = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]
    assert named and all(g["GroupName"] == "default" for g in named)
    refused("InvalidGroup.NotFound", ec2.describe_security_groups, GroupIds=["sg-00000000000000000"])
    refused("InvalidGroup.NotFound", ec2.describe_security_groups, GroupNames=["nothing"])


def images():
    """Images by ID, owner and permission; deprecated ones only when asked for."""
    image = world.image()
    equal([i["ImageId"] for i in ec2.describe_images(ImageIds=[image])["Images"]], [image])
    refused("InvalidAMIID.NotFound", ec2.describe_images, ImageIds=["ami-00000000000000000"])
    refused("InvalidAMIID.Malformed", ec2.describe_images, ImageIds=["nonsense"])
    amazon = ec2.describe_images(Owners=["amazon"])["Images"]
    equal({i["ImageOwnerAlias"] for i in amazon}, {"amazon"})
    equal(ec2.describe_images(Owners=["self"])["Images"], [])
    equal(len(ec2.describe_images(ExecutableUsers=["all"])["Images"]), len(amazon))
    equal(ec2.describe_images(ExecutableUsers=["444455556666"])["Images"], [])
    admin("deprecate", id=image)
    equal(ec2.describe_images(Filters=[{"Name": "image-id", "Values": [image]}])["Images"], [])
    shown = ec2.describe_images(Filters=[{"Name": "image-id", "Values": [image]}], IncludeDeprecated=True)["Images"]
    assert shown[0]["DeprecationTime"], shown


def types():
    """Types and where they are offered."""
    got = ec2.describe_instance_types(InstanceTypes=["m5.large", "p4d.24xlarge"])["InstanceTypes"]
    by_name = {t["InstanceType"]: t for t in got}
    equal(by_name["m5.large"]["VCpuInfo"]["DefaultVCpus"], 2)
    equal(by_name["m5.large"]["MemoryInfo"]["SizeInMiB"], 8192)
    equal(by_name["p4d.24xlarge"]["GpuInfo"]["Gpus"][0]["Count"], 8)
    equal(by_name["p4d.24xlarge"]["NetworkInfo"]["MaximumNetworkCards"], 4)
    refused("InvalidInstanceType", ec2.describe_instance_types, InstanceTypes=["m5.huge"])
    refused("InvalidParameterCombination", ec2.describe_instance_types, InstanceTypes=["m5.large"], MaxResults=5)
    refused("InvalidParameterValue", ec2.describe_instance_types, MaxResults=101)
    only = [{"Name": "instance-type", "Values": ["m5.large"]}]
    for kind, sort in (("region", "us-east-1"), ("availability-zone", "us-east-1a"), ("availability-zone-id", "use1-az")):
        offers = ec2.describe_instance_type_offerings(LocationType=kind, Filters=only)["InstanceTypeOfferings"]
        assert offers and all(o["Location"].startswith(sort[:7]) and o["LocationType"] == kind for o in offers), offers
    equal(len(ec2.describe_instance_type_offerings(Filters=only)["InstanceTypeOfferings"]), 1, "of the region, without a kind")


def spot_prices():
    """The price in effect at the start, and changes until the end, in the given zones, types and products."""
    now = datetime.datetime.now(datetime.timezone.utc)
    current = ec2.describe_spot_price_history(InstanceTypes=["m5.large"], ProductDescriptions=["Linux/UNIX"], StartTime=now,
                                              EndTime=now, AvailabilityZone="us-east-1a")["SpotPriceHistory"]
    equal([(p["InstanceType"], p["AvailabilityZone"]) for p in current], [("m5.large", "us-east-1a")])
    assert current[0]["Timestamp"] <= now and float(current[0]["SpotPrice"]) > 0, current
    day = ec2.describe_spot_price_history(InstanceTypes=["m5.large"], ProductDescriptions=["Linux/UNIX"],
                                          StartTime=now - datetime.timedelta(hours=5),
                                          AvailabilityZone="us-east-1a")["SpotPriceHistory"]
    equal(len(day), 6, "an hour each")
    equal(day, sorted(day, key=lambda p: p["Timestamp"], reverse=True), "newest first")
    equal(ec2.describe_spot_price_history(InstanceTypes=["m5.large"], ProductDescriptions=["SUSE Linux"])["SpotPriceHistory"], [])


def parameters():
    """SSM's public parameters: one, up to ten, and those below a path."""
    base = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard"
    one = ssm.get_parameter(Name=base + "/recommended/image_id", WithDecryption=True)["Parameter"]
    equal((one["Type"], one["DataType"]), ("String", "text"))
    equal(one["ARN"], "arn:aws:ssm:us-east-1::parameter" + one["Name"])
    refused("ParameterNotFound", ssm.get_parameter, Name="/nothing")
    several = ssm.get_parameters(Names=[one["Name"], "/nothing"], WithDecryption=False)
    equal(([p["Value"] for p in several["Parameters"]], several["InvalidParameters"]), ([one["Value"]], ["/nothing"]))
    refused("ValidationException", ssm.get_parameters, Names=["/a%d" % k for k in range(11)])
    below = ssm.get_parameters_by_path(Path=base + "/recommended", WithDecryption=True)["Parameters"]
    equal([p["Name"] for p in below], [base + "/recommended/image_id", base + "/recommended/image_name"])
    equal(ssm.get_parameters_by_path(Path=base)["Parameters"], [], "not below the next level")
    assert len(ssm.get_parameters_by_path(Path=base, Recursive=True, MaxResults=10)["Parameters"]) >= 4
    refused("ValidationException", ssm.get_parameters_by_path, Path=base, MaxResults=11)


def products():
    """Products of the price list, as JSON texts."""
    got = pricing.get_products(ServiceCode="AmazonEC2", FormatVersion="aws_v1", MaxResults=10, Filters=[
        {"Type": "TERM_MATCH", "Field": "instanceType", "Value": "m5.large"}, {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"},
        {"Type": "TERM_MATCH", "Field": "operatingSystem", "Value": "Linux"}])
    products_ = [json.loads(text) for text in got["PriceList"]]
    equal([p["product"]["attributes"]["instanceType"] for p in products_], ["m5.large"])
    term = list(products_[0]["terms"]["OnDemand"].values())[0]
    equal(float(list(term["priceDimensions"].values())[0]["pricePerUnit"]["USD"]), 0.096)
    refused("InvalidParameterException", pricing.get_products, ServiceCode="AmazonNothing")
    refused("InvalidParameterException", pricing.get_products, ServiceCode="AmazonEC2", MaxResults=101)
    refused("InvalidParameterException", pricing.get_products, ServiceCode="AmazonEC2", FormatVersion="aws_v2")
    refused("InvalidNextTokenException", pricing.get_products, ServiceCode="AmazonEC2", NextToken="nonsense")
    equal(pricing.get_products(ServiceCode="AmazonEC2", Filters=[{"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Host"}])["PriceList"], [])


for case in (zones, networks, images, types, spot_prices, parameters, products):
    case()
