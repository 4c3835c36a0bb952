"""SQS in the Query protocol, which boto3 1.26 speaks: create, send, receive, visibility, batches, attributes, purge."""

import json
import threading
import time

from sim import client, equal, refused

sqs = client("sqs")
NONE = "AWS.SimpleQueueService.NonExistentQueue"


def creation():
    """A queue is created once; the same name with another attribute is refused."""
    url = sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "1", "MessageRetentionPeriod": "300"})["QueueUrl"]
    equal(sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "1"})["QueueUrl"], url)
    refused("QueueAlreadyExists", sqs.create_queue, QueueName="orders", Attributes={"VisibilityTimeout": "2"})
    refused("InvalidAttributeName", sqs.create_queue, QueueName="other", Attributes={"Colour": "red"})
    refused("InvalidAttributeValue", sqs.create_queue, QueueName="other", Attributes={"VisibilityTimeout": "43201"})
    refused("InvalidParameterValue", sqs.create_queue, QueueName="not a name")
    equal(sqs.get_queue_url(QueueName="orders")["QueueUrl"], url)
    equal(sqs.get_queue_url(QueueName="orders", QueueOwnerAWSAccountId="111122223333")["QueueUrl"], url)
    refused(NONE, sqs.get_queue_url, QueueName="orders", QueueOwnerAWSAccountId="444455556666")
    error = refused(NONE, sqs.get_queue_url, QueueName="nothing")
    equal(type(error).__name__, "QueueDoesNotExist")
    equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 400)
    return url


def attributes(url):
    """Attributes are set, and shown when they are asked for."""
    every = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    equal(every["VisibilityTimeout"], "1")
    equal(every["MessageRetentionPeriod"], "300")
    equal(every["QueueArn"], "arn:aws:sqs:us-east-1:111122223333:orders")
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy, "VisibilityTimeout": "2"})
    got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy", "VisibilityTimeout"])["Attributes"]
    equal(got, {"Policy": policy, "VisibilityTimeout": "2"})
    equal(sqs.get_queue_attributes(QueueUrl=url).get("Attributes"), None)
    refused("InvalidAttributeName", sqs.get_queue_attributes, QueueUrl=url, AttributeNames=["Colour"])
    refused("InvalidAttributeValue", sqs.set_queue_attributes, QueueUrl=url, Attributes={"DelaySeconds": "901"})
    refused(NONE, sqs.get_queue_attributes, QueueUrl=url + "x", AttributeNames=["All"])


def messages(url):
    """A message is received once within its visibility timeout, with what is asked of it."""
    colour = {"colour": {"DataType": "String", "StringValue": "red"}, "n": {"DataType": "Number", "StringValue": "3"}}
    sent = sqs.send_message(QueueUrl=url, MessageBody="a <b> & c", MessageAttributes=colour)
    plain = sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"][0]
    equal(sorted(plain), ["Body", "MD5OfBody", "MessageId", "ReceiptHandle"])
    equal((plain["Body"], plain["MessageId"]), ("a <b> & c", sent["MessageId"]))
    full = sqs.receive_message(QueueUrl=url, AttributeNames=["All"], MessageAttributeNames=["All"])["Messages"][0]
    equal(full["MessageAttributes"], colour)
    equal(full["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"])
    equal(full["Attributes"]["ApproximateReceiveCount"], "2")
    equal(len(full["Attributes"]["SentTimestamp"]), 13, "milliseconds")
    equal(sqs.receive_message(QueueUrl=url).get("Messages"), None, "hidden")
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=full["ReceiptHandle"], VisibilityTimeout=0)
    again = sqs.receive_message(QueueUrl=url, AttributeNames=["ApproximateReceiveCount"],
                                MessageAttributeNames=["col*"])["Messages"][0]
    equal(again["Attributes"], {"ApproximateReceiveCount": "3"})
    equal(list(again["MessageAttributes"]), ["colour"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=full["ReceiptHandle"])
    equal(count(url), (0, 1, 0), "an old receipt deletes nothing")
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    equal(count(url), (0, 0, 0))
    sqs.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    refused("ReceiptHandleIsInvalid", sqs.delete_message, QueueUrl=url, ReceiptHandle="nonsense")
    refused("AWS.SimpleQueueService.MessageNotInflight", sqs.change_message_visibility, QueueUrl=url,
            ReceiptHandle=again["ReceiptHandle"], VisibilityTimeout=5)


def count(url):
    """Returns the messages that are visible, in flight and delayed."""
    got = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return tuple(int(got["ApproximateNumberOfMessages" + kind]) for kind in ("", "NotVisible", "Delayed"))


def waiting(url):
    """A call that waits ends with the message; a visibility timeout ends by itself; a delay hides."""
    start = time.monotonic()
    threading.Timer(0.3, client("sqs").send_message, kwargs={"QueueUrl": url, "MessageBody": "late"}).start()
    got = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20, VisibilityTimeout=1)["Messages"]
    equal([m["Body"] for m in got], ["late"])
    assert time.monotonic() - start < 10, "a call that waits ends when a message arrives"
    got = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    equal([m["Body"] for m in got], ["late"], "visible again")
    sqs.delete_message(QueueUrl=url, ReceiptHandle=got[0]["ReceiptHandle"])
    equal(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages"), None)
    sqs.send_message(QueueUrl=url, MessageBody="delayed", DelaySeconds=1)
    equal(count(url), (0, 0, 1))
    got = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    equal([m["Body"] for m in got], ["delayed"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=got[0]["ReceiptHandle"])


def batches(url):
    """Entries of a batch succeed or fail one by one; a batch has one to ten."""
    entries = [{"Id": "e%d" % k, "MessageBody": "m%d" % k} for k in range(9)] + [{"Id": "bad", "MessageBody": "x", "DelaySeconds": 901}]
    sent = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    equal([e["Id"] for e in sent["Successful"]], ["e%d" % k for k in range(9)])
    equal([(e["Id"], e["Code"], e["SenderFault"]) for e in sent["Failed"]], [("bad", "InvalidParameterValue", True)])
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    equal(sorted(m["Body"] for m in got), ["m%d" % k for k in range(9)])
    gone = [{"Id": m["Body"], "ReceiptHandle": m["ReceiptHandle"]} for m in got] + [{"Id": "bad", "ReceiptHandle": "nonsense"}]
    deleted = sqs.delete_message_batch(QueueUrl=url, Entries=gone)
    equal(len(deleted["Successful"]), 9)
    equal([(e["Id"], e["Code"]) for e in deleted["Failed"]], [("bad", "ReceiptHandleIsInvalid")])
    equal(count(url), (0, 0, 0))
    prefix = "AWS.SimpleQueueService."
    refused(prefix + "EmptyBatchRequest", sqs.delete_message_batch, QueueUrl=url, Entries=[])
    refused(prefix + "TooManyEntriesInBatchRequest", sqs.send_message_batch, QueueUrl=url,
            Entries=[{"Id": str(k), "MessageBody": "x"} for k in range(11)])
    twice = [{"Id": "a", "MessageBody": "x"}] * 2
    refused(prefix + "BatchEntryIdsNotDistinct", sqs.send_message_batch, QueueUrl=url, Entries=twice)
    refused(prefix + "InvalidBatchEntryId", sqs.send_message_batch, QueueUrl=url, Entries=[{"Id": "a b", "MessageBody": "x"}])


def bounds(url):
    """Numbers out of bounds and empty bodies are refused."""
    for name, number in (("MaxNumberOfMessages", 11), ("MaxNumberOfMessages", 0), ("WaitTimeSeconds", 21), ("VisibilityTimeout", 43201)):
        refused("InvalidParameterValue", sqs.receive_message, QueueUrl=url, **{name: number})
    refused("InvalidAttributeName", sqs.receive_message, QueueUrl=url, AttributeNames=["Policy"])
    refused("MissingParameter", sqs.send_message, QueueUrl=url, MessageBody="")
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"MaximumMessageSize": "1024"})
    refused("InvalidParameterValue", sqs.send_message, QueueUrl=url, MessageBody="x" * 1025)
    refused("InvalidParameterValue", sqs.send_message, QueueUrl=url, MessageBody="x",
            MessageAttributes={"a": {"DataType": "Colour", "StringValue": "red"}})


def end(url):
    """A queue is purged once a minute, and deleted."""
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.purge_queue(QueueUrl=url)
    equal(count(url), (0, 0, 0))
    refused("AWS.SimpleQueueService.PurgeQueueInProgress", sqs.purge_queue, QueueUrl=url)
    sqs.delete_queue(QueueUrl=url)
    refused(NONE, sqs.send_message, QueueUrl=url, MessageBody="x")


URL = creation()
for case in (attributes, messages, waiting, batches, bounds, end):
    case(URL)
