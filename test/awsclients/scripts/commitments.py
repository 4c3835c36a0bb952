"""Reserved instances: their scope, their state, and the parameters that select them."""

from sim import admin, client, equal, refused

ec2 = client("ec2")


def bought(**params):
    """Returns the IDs of reserved instances."""
    return sorted(r["ReservedInstancesId"] for r in ec2.describe_reserved_instances(**params)["ReservedInstances"])


def run():
    """Buys some and finds them."""
    zonal, regional, windows = [admin("reserve-instances", reserved=r)["reservedInstances"] for r in (
        {"instanceType": "m6i.large", "zone": "us-east-1a", "count": 2},
        {"instanceType": "m6i.xlarge", "count": 3, "offeringClass": "convertible", "offeringType": "No Upfront"},
        {"instanceType": "m6i.xlarge", "product": "Windows", "tenancy": "dedicated"})]
    equal(bought(), sorted([zonal, regional, windows]))
    equal(bought(ReservedInstancesIds=[zonal, windows]), sorted([zonal, windows]))
    equal(bought(OfferingClass="convertible"), [regional])
    equal(bought(OfferingType="No Upfront"), [regional])
    equal(bought(OfferingType="All Upfront", OfferingClass="convertible"), [])
    first = ec2.describe_reserved_instances(ReservedInstancesIds=[zonal])["ReservedInstances"][0]
    equal((first["Scope"], first["AvailabilityZone"], first["InstanceCount"], first["State"]), ("Availability Zone", "us-east-1a", 2, "active"))
    equal(ec2.describe_reserved_instances(ReservedInstancesIds=[regional])["ReservedInstances"][0]["Scope"], "Region")
    admin("retire", id=zonal)
    equal(bought(Filters=[{"Name": "state", "Values": ["active"]}]), sorted([regional, windows]))
    equal(bought(Filters=[{"Name": "state", "Values": ["retired"]}]), [zonal])
    refused("InvalidReservedInstancesId", ec2.describe_reserved_instances, ReservedInstancesIds=["00000000-none"])
    refused("InvalidParameterValue", ec2.describe_reserved_instances, OfferingClass="no-such-class")


run()
