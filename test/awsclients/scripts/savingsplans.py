"""Savings Plans: their states, the filters that select them, and their rates."""

import json

from sim import admin, client, equal, refused

plans = client("savingsplans")
NONE = "00000000-0000-4000-8000-000000000000"


def bought(**params):
    """Returns the IDs of plans."""
    return sorted(p["savingsPlanId"] for p in plans.describe_savings_plans(**params)["savingsPlans"])


def only(name, *values):
    """Returns filters."""
    return {"filters": [{"name": name, "values": list(values)}]}


def paged(call, member, **params):
    """Returns the items of all pages of two, as texts."""
    token, found = {}, []
    while True:
        page = call(maxResults=2, **token, **params)
        assert len(page[member]) <= 2, page
        found += [json.dumps(item, sort_keys=True) for item in page[member]]
        if "nextToken" not in page:
            return found
        token = {"nextToken": page["nextToken"]}


def run():
    """Buys some plans, finds them, and reads their rates."""
    compute, family, queued, ended = everything = [admin("buy-savings-plan", plan=p)["savingsPlan"] for p in (
        {"commitment": 1.5, "years": 3, "payment": "Partial Upfront", "tags": {"team": "a"}},
        {"type": "EC2Instance", "family": "m6i", "commitment": 2},
        {"commitment": 1, "state": "queued", "start": "2100-01-01T00:00:00Z"},
        {"commitment": 1, "start": "2019-01-01T00:00:00Z", "end": "2020-01-01T00:00:00Z"})]
    found(compute, family, queued, ended, everything)
    rates(compute, family)
    refused("ValidationException", plans.describe_savings_plans, states=["no-such-state"])
    refused("ValidationException", plans.describe_savings_plans, savingsPlanArns=["arn:aws:ec2:us-east-1:111122223333:instance/i-1"])
    refused("ValidationException", plans.describe_savings_plans, nextToken="nonsense")
    refused("ResourceNotFoundException", plans.describe_savings_plan_rates, savingsPlanId=NONE)
    for call, params in ((plans.describe_savings_plans, {}), (plans.describe_savings_plan_rates, {"savingsPlanId": compute})):
        refused("ValidationException", call, **only("colour", "red"), **params)
        refused("ValidationException", call, **only("region"), **params)
        refused("ValidationException", call, nextToken="bm9uc2Vuc2U=", **params)


def found(compute, family, queued, ended, everything):
    """Checks what selects plans: each filter by the member that it compares."""
    equal(bought(), sorted(everything))
    equal(bought(savingsPlanIds=[compute, ended, NONE]), sorted([compute, ended]))
    first = plans.describe_savings_plans(savingsPlanIds=[compute])["savingsPlans"][0]
    equal(first["savingsPlanArn"], "arn:aws:savingsplans::111122223333:savingsplan/" + compute)
    equal((first["savingsPlanType"], first["termDurationInSeconds"], first["productTypes"]), ("Compute", 94608000, ["EC2", "Fargate", "Lambda"]))
    equal((first["commitment"], first["recurringPaymentAmount"], first["tags"]), ("1.50000000", "0.75000000", {"team": "a"}))
    equal(bought(savingsPlanArns=[first["savingsPlanArn"]]), [compute])
    for state, want in (("active", [compute, family]), ("queued", [queued]), ("retired", [ended]), ("payment-failed", [])):
        equal(bought(states=[state]), sorted(want), state)
    of_family = plans.describe_savings_plans(savingsPlanIds=[family])["savingsPlans"][0]
    for name, values, want in (
            ("region", ["us-east-1", "eu-west-1"], [family]), ("ec2-instance-family", ["m6i"], [family]), ("instance-family", ["m6i"], [family]),
            ("commitment", ["1.50000000"], [compute]), ("upfront", [first["upfrontPaymentAmount"]], [compute]),
            ("term", ["94608000"], [compute]), ("savings-plan-type", ["EC2Instance"], [family]),
            ("payment-option", ["Partial Upfront"], [compute]), ("start", ["2100-01-01T00:00:00.000Z"], [queued]),
            ("end", ["2020-01-01T00:00:00.000Z"], [ended]), ("region", ["us-west-2"], [])):
        equal(bought(**only(name, *values)), sorted(want), name)
    equal((of_family["region"], of_family["ec2InstanceFamily"]), ("us-east-1", "m6i"))
    equal(len(set(paged(plans.describe_savings_plans, "savingsPlans"))), 4)


def rates(compute, family):
    """Checks what selects rates."""
    def of(plan, *filters):
        return plans.describe_savings_plan_rates(savingsPlanId=plan, filters=[f["filters"][0] for f in filters])["searchResults"]

    narrow = (only("region", "us-east-1"), only("tenancy", "shared"), only("productDescription", "Linux/UNIX"), only("instanceType", "m6i.large"))
    for plan in (compute, family):
        got = of(plan, only("usageType", "BoxUsage:m6i.large"), *narrow)
        equal(len(got), 1, "rates of m6i.large")
        equal({p["name"]: p["value"] for p in got[0]["properties"]}, {
            "region": "us-east-1", "tenancy": "shared", "productDescription": "Linux/UNIX", "instanceType": "m6i.large", "instanceFamily": "m6i"})
        equal((got[0]["unit"], got[0]["currency"], got[0]["operation"]), ("Hrs", "USD", "RunInstances"))
        assert 0.03 < float(got[0]["rate"]) < 0.096, got
    equal(of(family, only("instanceType", "c6i.large")), [])
    equal({r["serviceCode"] for r in of(compute, only("productType", "Fargate"))}, {"AmazonECS", "AmazonEKS"})
    equal({r["unit"] for r in of(compute, only("serviceCode", "AWSLambda"))}, {"Lambda-GB-Second"})
    windows = of(compute, only("operation", "RunInstances:0002"), only("instanceType", "m6i.large", "c6i.large"), only("tenancy", "dedicated"))
    equal(sorted(r["usageType"] for r in windows), ["DedicatedUsage:c6i.large", "DedicatedUsage:m6i.large", "USW2-DedicatedUsage:c6i.large",
                                                    "USW2-DedicatedUsage:m6i.large"])
    whole = of(family, only("tenancy", "dedicated"))
    equal(sorted(paged(plans.describe_savings_plan_rates, "searchResults", savingsPlanId=family, **only("tenancy", "dedicated"))),
          sorted(json.dumps(r, sort_keys=True) for r in whole))


run()
