"""Each filter of each call selects what the answer shows, and no other filter is accepted.

The whole answer is read without a filter; for values of the items at the filter's place, the same call with the filter
has to give the items that have the value, and no others. The place is what the simulation says (GET /_admin/served);
that it is the right one is seen by its name, which has the letters of the filter's name.
"""

import re
import xml.etree.ElementTree as ElementTree

import world
from model import bare
from sim import admin, client, equal, method, refused

ec2 = client("ec2")
MODEL = ec2.meta.service_model

# Filters whose names differ from the elements that they select by.
OTHERWISE = {
    "affinity": "placement", "ip-permission": "cidr and groups", "network-interface.availability-zone": "of the instance",
    "network-interface.attachment.instance-id": "of the instance", "network-interface.attachment.instance-owner-id": "of the reservation",
    "instance.group-id": "groupSet", "instance.group-name": "groupSet", "launch-index": "amiLaunchIndex",
    "manifest-location": "imageLocation", "cidr": "cidrBlock", "instance-status.reachability": "details", "state": "zoneState",
    "system-status.reachability": "details", "placement-group-name": "placement", "description": "groupDescription",
    "volume-status.details-name": "name", "volume-status.details-status": "status", "creation-date": "creationDate", "owner-alias": "imageOwnerAlias",
}
WRAPPERS = ("item", "set", "info")

BODY = {}
ec2.meta.events.register("response-received", lambda response_dict, **_: BODY.update(text=response_dict["body"]))


def letters(text):
    """Returns the letters of a name, without those of wrappers."""
    return re.sub("[^a-z0-9]", "", text.lower())


def alike(name, path):
    """Tells whether a filter and the element that it selects by have one name."""
    if name in OTHERWISE or any(name.startswith(k + ".") or "." + k + "." in name for k in OTHERWISE):
        return True
    last, element = letters(name.split(".")[-1]), letters(path.replace(">item", "").split(">")[-1])
    whole = letters(path.replace(">item", ""))
    return last == element or last.endswith(element) or element.endswith(last) or whole.endswith(letters(name)) or letters(name) in whole


def documented(operation):
    """Returns the filters that AWS's documentation lists for a call; their values are lists within the list."""
    text = operation.input_shape.members["Filters"].documentation
    names, depth = [], 0
    for mark in re.finditer(r"<(/?)(ul|li)>( ?<p> ?<code>([^<]*)</code>)?", text):
        if mark.group(2) == "ul":
            depth += -1 if mark.group(1) else 1
        elif depth == 1 and mark.group(4):
            names.append(mark.group(4).replace(":&lt;key&gt;", ""))
    assert names, "no filters in the documentation of %s" % operation.name
    return names


def items(text, element):
    """Returns the items of an answer as texts with their elements."""
    root = ElementTree.fromstring(text)
    found = [child for child in root if bare(child) == element]
    return {ElementTree.tostring(item): item for item in (found[0] if found else [])}


def values(item, path):
    """Returns the texts at a path."""
    at = [item]
    for step in path.split(">"):
        at = [child for element in at for child in element if bare(child) == step]
    return [element.text or "" for element in at]


def in_model(operation, element, path):
    """Tells whether an element exists in botocore's model."""
    shape = operation.output_shape
    for step in [element] + ["item"] + path.split(">"):
        if shape.type_name == "list":
            shape = shape.member
            continue
        members = {m.serialization.get("name", n): m for n, m in shape.members.items()} if shape.type_name == "structure" else {}
        if step not in members:
            return False
        shape = members[step]
    return True


LISTS = {"DescribeAvailabilityZones": "availabilityZoneInfo", "DescribeSubnets": "subnetSet", "DescribeSecurityGroups": "securityGroupInfo",
         "DescribeImages": "imagesSet", "DescribeInstanceTypes": "instanceTypeSet", "DescribeSpotPriceHistory": "spotPriceHistorySet",
         "DescribeInstanceTypeOfferings": "instanceTypeOfferingSet", "DescribeInstances": "reservationSet",
         "DescribeInstanceStatus": "instanceStatusSet", "DescribeLaunchTemplates": "launchTemplates",
         "DescribeCapacityReservations": "capacityReservationSet", "DescribePlacementGroups": "placementGroupSet",
         "DescribeVolumeStatus": "volumeStatusSet", "DescribeReservedInstances": "reservedInstancesSet"}
# What makes the answer of a call one page.
NARROW = {"DescribeInstanceTypes": {"InstanceTypes": ["m5.large", "m6g.large", "i3en.6xlarge", "p4d.24xlarge", "t2.micro", "c5n.metal", "inf1.xlarge"]},
          "DescribeSpotPriceHistory": {"InstanceTypes": ["m5.large", "c5.xlarge"]}}


def select(action, **params):
    """Returns the items of the first page of a call."""
    method(ec2, action)(**dict(NARROW.get(action, {}), **params))
    return items(BODY["text"], LISTS[action])


def check(action, name, path, every):
    """Checks one filter."""
    assert alike(name, path), "%s: the filter %s selects by %s" % (action, name, path)
    having = {}
    for text, item in every.items():
        for value in values(item, path):
            having.setdefault(value, set()).add(text)
    chosen = sorted(v for v in having if v and "*" not in v)
    for value in chosen[:2] + chosen[-1:]:
        got = select(action, Filters=[{"Name": name, "Values": [value]}])
        equal(set(got), having[value], "%s of %s=%s" % (action, name, value))
    got = select(action, Filters=[{"Name": name, "Values": ["no-such-value", "?no*"]}])
    equal(len(got), 0, "%s of %s" % (action, name))
    if len(chosen) > 1:
        two = select(action, Filters=[{"Name": name, "Values": chosen[:2]}])
        equal(set(two), having[chosen[0]] | having[chosen[1]], "%s of one of two values of %s" % (action, name))
        value = chosen[0]
        wild = select(action, Filters=[{"Name": name, "Values": ["?" + value[1:-1] + "*"]}])
        assert set(wild) >= having[value], "%s of %s with wildcards" % (action, name)


def tags(action, every):
    """Checks the filters on tags."""
    keys = {(k, v) for item in every.values() for k, v in zip(values(item, "tagSet>item>key"), values(item, "tagSet>item>value"))}
    inner = "instancesSet>item>" if action == "DescribeInstances" else ""
    if inner:
        keys = {(k, v) for item in every.values()
                for k, v in zip(values(item, inner + "tagSet>item>key"), values(item, inner + "tagSet>item>value"))}
    for key, value in sorted(keys)[:3]:
        got = select(action, Filters=[{"Name": "tag:" + key, "Values": [value]}])
        assert got and all(value in values(item, inner + "tagSet>item>value") for item in got.values()), (action, key)
        got = select(action, Filters=[{"Name": "tag-key", "Values": [key]}])
        want = {text for text, item in every.items() if key in values(item, inner + "tagSet>item>key")}
        equal(set(got), want, "%s of tag-key=%s" % (action, key))
    for name, value in (("tag:no-such-key", "*"), ("tag-key", "no-such-key")):
        equal(len(select(action, Filters=[{"Name": name, "Values": [value]}])), 0)


def run():
    """Checks all calls."""
    world.full()
    for kind in ({"strategy": "cluster"}, {"strategy": "partition", "partitions": 7}, {"strategy": "spread", "spreadLevel": "rack"}):
        admin("placement-group", group=dict(kind, name="group-" + kind["strategy"], tags={"team": kind["strategy"]}))
    for number, zone in ((2, "us-east-1a"), (3, "us-east-1b")):
        admin("reserve", reservation={"instanceType": "m6i.large", "zone": zone, "total": number, "tags": {"team": zone}})
    for reserved in ({"instanceType": "m6i.large", "zone": "us-east-1a", "tags": {"team": "a"}}, {"instanceType": "c6i.large", "count": 3}):
        admin("reserve-instances", reserved=reserved)
    admin("schedule", id=world.launched(world.fleet("plain", [("m5.large", "us-east-1a")]))[0], event="instance-stop",
          at="2030-01-01T00:00:00Z")
    world.await_state([i["id"] for i in admin("instances")], "running")
    for served in admin("served"):
        action, filters = served["action"], served["filters"]
        if served["service"] != "ec2" or "Filter" not in served["params"]:
            continue
        assert filters is not None, "%s accepts filters and has no table of them" % action
        if action not in MODEL.operation_names:
            continue
        operation = MODEL.operation_model(action)
        missing = set(documented(operation)) - set(filters)
        assert not missing, "%s: AWS documents %s, which neither act nor are refused" % (action, sorted(missing))
        every = select(action)
        known = 0
        for name, path in sorted(filters.items()):
            if name in ("tag", "tag-key"):
                continue
            if path == "":
                refused("InvalidParameterValue", method(ec2, action), Filters=[{"Name": name, "Values": ["x"]}])
                continue
            known += in_model(operation, LISTS[action], path)
            check(action, name, path, every)
        assert known > len(filters) / 3, "%s: few paths of filters are in the model" % action
        refused("InvalidParameterValue", method(ec2, action), Filters=[{"Name": "no-such-filter", "Values": ["x"]}])
        if "tag" in filters:
            tags(action, every)
        else:
            refused("InvalidParameterValue", method(ec2, action), Filters=[{"Name": "tag-key", "Values": ["x"]}])


run()
