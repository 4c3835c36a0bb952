"""EventBridge's rules and their targets."""

import json

from sim import client, equal, refused

events = client("events")
PATTERN = json.dumps({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]})
QUEUE = "arn:aws:sqs:us-east-1:111122223333:interruptions"

made = events.put_rule(Name="spot", EventPattern=PATTERN)
equal(made["RuleArn"], "arn:aws:events:us-east-1:111122223333:rule/spot")
equal(events.put_rule(Name="spot", EventPattern=PATTERN)["RuleArn"], made["RuleArn"], "again")
refused("ValidationException", events.put_rule, Name="spot")
refused("ValidationException", events.put_rule, Name="no name", EventPattern=PATTERN)
refused("InvalidEventPatternException", events.put_rule, Name="spot", EventPattern='{"source":"aws.ec2"}')
equal(events.put_targets(Rule="spot", Targets=[{"Id": "queue", "Arn": QUEUE}])["FailedEntryCount"], 0)
failed = events.put_targets(Rule="spot", Targets=[{"Id": "far", "Arn": QUEUE.replace("us-east-1", "eu-west-1")}])
equal((failed["FailedEntryCount"], failed["FailedEntries"][0]["TargetId"]), (1, "far"))
refused("ResourceNotFoundException", events.put_targets, Rule="nothing", Targets=[{"Id": "queue", "Arn": QUEUE}])
