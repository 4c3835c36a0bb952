"""Each pager of botocore ends and gives every item once, whatever the size of a page."""

import json

import world
from sim import admin, client, equal, method, record, refused  # pylint: disable=unused-import

# What a pager needs, and the least size of a page.
NEEDS = {
    "GetParametersByPath": ({"Path": "/aws/service/eks/optimized-ami/1.36", "Recursive": True}, 3), "GetProducts": ({"ServiceCode": "AmazonEC2"}, 90),
    "DescribeInstanceTypes": ({"Filters": [{"Name": "instance-type", "Values": ["m5*"]}]}, 5),
    "DescribeInstanceTypeOfferings": ({"Filters": [{"Name": "instance-type", "Values": ["m5*"]}]}, 7),
    "DescribeSpotPriceHistory": ({"InstanceTypes": ["m5.large", "c5.large"]}, 11),
    "DescribeLaunchTemplates": ({}, 1), "DescribeCapacityReservations": ({}, 1), "ListInstanceProfiles": ({}, 2),
}


def setup():
    """Makes more than one page of everything."""
    for number in range(7):
        world.template("template-%d" % number)
        client("iam").create_instance_profile(InstanceProfileName="profile-%d" % number)
        admin("reserve", reservation={"instanceType": "m6i.large", "zone": "us-east-1a", "total": 1, "criteria": "targeted"})
    world.await_state(world.launched(world.fleet("template-0", [("m5.large", "us-east-1a")], 12)), "running")


def items(made, action, size):
    """Returns all items of a call as texts, and the number of its pages."""
    name = {v: k for k, v in made.meta.method_to_api_mapping.items()}[action]
    pager = made.get_paginator(name)
    found, pages = [], 0
    for page in pager.paginate(**NEEDS.get(action, ({}, 5))[0], **({"PaginationConfig": {"PageSize": size}} if size else {})):
        pages += 1
        for key in pager.result_keys:
            for item in key.search(page) or []:
                found.append(json.dumps(item, default=str, sort_keys=True))
    return found, pages


def run():
    """Pages each call that botocore has a pager for."""
    setup()
    checked = 0
    for served in admin("served"):
        try:
            made = client(served["service"])
            name = {v: k for k, v in made.meta.method_to_api_mapping.items()}[served["action"]]
        except Exception:  # pylint: disable=broad-except
            continue  # newer than boto3
        if not made.can_paginate(name) or not {"MaxResults", "MaxItems"} & set(served["params"]):
            continue
        size = NEEDS.get(served["action"], ({}, 5))[1]
        whole, _ = items(made, served["action"], None)
        paged, pages = items(made, served["action"], size)
        checked += len(whole) > size
        assert pages >= len(paged) / size, "%s: %d items, %d pages" % (name, len(paged), pages)
        equal(len(set(paged)), len(paged), "%s: an item is there twice" % name)
        equal(sorted(paged), sorted(whole), name)
        if served["service"] == "ec2":
            refused("InvalidPaginationToken", getattr(made, name), NextToken="nonsense", **NEEDS.get(served["action"], ({}, 5))[0])
    assert checked >= 10, "only %d pagers" % checked


run()
