// Package awsclients compares the simulated AWS (internal/testing/awssim) with AWS's documentation by clients that are
// written elsewhere: boto3 and the AWS CLI of Debian.
//
//	scripts/NAME.py ── boto3 ──> awssim on a port of this machine
//	   |                            └── GET /_admin/served: the calls, parameters and filters that act
//	   ├── sim.py:   clients, and the file of all calls that were made
//	   └── model.py: each response, read again and compared with botocore's model of the service
//
// The scripts are cases: one for each area. TestCovered fails when a call, a parameter or a filter that acts has none,
// and when botocore's model has one that neither acts nor is refused, so that a call that is added needs a case.
//
// The AWS CLI runs the commands by which docs/aws.md creates the queue and the rules. The tests need the packages
// python3-boto3, awscli and jq of Debian, and are skipped without them, unless CI is "true".
package awsclients
