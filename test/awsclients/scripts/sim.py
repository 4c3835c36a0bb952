"""Clients of boto3 for the simulated AWS, whose answers are compared with the models, and short checks.

SIM_URL is the address of the simulation. What was asked and answered is appended to SIM_CALLS, one JSON object for each
call: what a Go test counts.
"""

import json
import os
import time
import urllib.request

import boto3
import botocore.config
import botocore.exceptions

import model

URL = os.environ["SIM_URL"]
REGION = "us-east-1"


def client(service):
    """Returns a client that does not retry, so that each error is visible."""
    made = boto3.client(service, endpoint_url=URL, region_name=REGION, aws_access_key_id="AKIDBOTO", aws_secret_access_key="secret",
                        config=botocore.config.Config(retries={"total_max_attempts": 1}))

    def received(response_dict, event_name, **_):
        operation = made.meta.service_model.operation_model(event_name.rsplit(".", 1)[-1])
        try:
            model.check(operation, response_dict["status_code"], response_dict["body"])
        except model.Mismatch as problem:
            raise AssertionError("%s %s: %s\n%s" % (service, operation.name, problem, response_dict["body"][:3000])) from problem

    def recorded(http_response, parsed, model, **_):  # pylint: disable=redefined-outer-name
        record(service, model.name, parsed.get("Error", {}).get("Code", "OK") if http_response.status_code >= 300 else "OK")

    made.meta.events.register("response-received", received)
    made.meta.events.register("before-parameter-build", asked)
    made.meta.events.register("after-call", recorded)
    return made


LAST = {}


def name_on_wire(protocol, name, member):
    """Returns the name of a parameter in a request."""
    said = member.serialization.get("name", name)
    if protocol == "ec2":
        said = member.serialization.get("queryName", said[0].upper() + said[1:])
    if protocol == "query" and member.type_name == "list" and member.serialization.get("flattened"):
        return name  # SQS, whose table has the names of the JSON protocol
    return name if protocol == "query" else said


def method(made, action):
    """Returns the method of a client for a call."""
    return getattr(made, {name: key for key, name in made.meta.method_to_api_mapping.items()}[action])


def asked(params, model, **_):  # pylint: disable=redefined-outer-name
    """Notes the parameters of the call that follows."""
    filters = params.get("Filters", params.get("filters", []))
    filters = filters if isinstance(filters, list) else []
    members = model.input_shape.members if model.input_shape else {}
    names = [name_on_wire(model.metadata["protocol"], name, members[name]) for name in params if name in members]
    given = [f.get("Name", f.get("name", "")) for f in filters]
    LAST.update(params=sorted(names), filters=["tag" if name.startswith("tag:") else name for name in given if name])


def record(service, action, code):
    """Appends a call to the file that a Go test reads."""
    line = {"service": service, "action": action, "code": code, "params": LAST.get("params", []), "filters": LAST.get("filters", [])}
    with open(os.environ["SIM_CALLS"], "a", encoding="utf-8") as calls:
        calls.write(json.dumps(line) + "\n")


def admin(verb, **body):
    """Posts to the admin API of the simulation, or gets a view when there is no body."""
    data = json.dumps(body).encode() if body else None
    with urllib.request.urlopen(urllib.request.Request(URL + "/_admin/" + verb, data=data)) as response:
        return json.load(response)


def equal(got, want, what=""):
    """Fails unless both are equal."""
    assert got == want, "%s: got %r, want %r" % (what, got, want)


def refused(code, call, **params):
    """Calls, and fails unless the call is refused by that code. It returns the error."""
    try:
        call(**params)
    except botocore.exceptions.ClientError as error:
        equal(error.response["Error"]["Code"], code, "%s of %s (%s)" % (call.__name__, params, error))
        assert error.response["ResponseMetadata"]["RequestId"], "no request ID: %s" % error.response
        return error
    raise AssertionError("%s of %s was not refused, want %s" % (call.__name__, params, code))


def await_(what, condition, seconds=10):
    """Waits until the condition returns something true, and returns that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.02)
    raise AssertionError("%s: not within %d s" % (what, seconds))
