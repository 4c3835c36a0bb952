// Package awssim is a simulated AWS for tests: one http.Handler that implements the wire protocols of EC2 (Query, XML),
// SSM, SQS and Pricing (JSON), EKS, ARC zonal shift and Savings Plans (REST, JSON), IAM and STS (Query, XML) for the
// calls that a node provider makes. It behaves as AWS documents, including limits and errors. Clients are the unmodified
// SDK with its endpoint set. The service of a request is taken from the credential scope that the SDK signs. Signatures
// are not verified.
//
//	request -> faults (freeze, slow, fail, ...) -> credentials -> permission -> token bucket -> parameters -> action
//	                                                                                                            |
//	clock -> due events: pending -> running -> booted -> shutting-down -> terminated -> forgotten               v
//	                     spot notices, pools that shrink, messages that expire ---------->               one state, one lock
//
// Real data: the instance types, their zones and on-demand prices (package catalog), EC2's request and resource rate
// limits, the names of parameters and errors. A model that depends only on Options.Seed and the clock generates the
// capacity of the pools per (type, zone, capacity type), spot prices, delays and image IDs. Keep those out of golden
// files. Texts of error messages are AWS's where programs are known to parse them, and original ones elsewhere.
//
// A parameter that is not simulated is rejected and never ignored, so that a test cannot pass because a parameter was
// not checked. What acts is in one table for each call: method.params, and ec2Filters, which says where an answer shows
// the value of a filter; ServedCalls has both. The comment of each action has the URL of its page in the AWS API
// reference.
//
// Tests inject faults with the methods of Cloud (Drain, Inject, Interrupt, Spoil, ReleaseImages ...) or by POSTing JSON
// to /_admin/ (see admin_http.go). Options.Hook is called when an instance has booted and when it is gone, with the
// user data of its launch, so that a sandbox can create a Node for it.
//
// In a test, with the SDK on a virtual clock (testing/synctest):
//
//	cloud, err := awssim.New(awssim.Options{Queue: "queue"})
//	pipe := awssim.NewPipe()
//	go cloud.Serve(ctx, pipe)
//	cfg := aws.Config{Region: "us-east-1", Credentials: ...,
//		HTTPClient: pipe.HTTPClient(), BaseEndpoint: aws.String(awssim.Endpoint)}
//
// The package must not depend on the provider that it tests: it imports nothing below internal/cloud/aws but the
// catalog's data, and no SDK outside of its tests. If it shared code with the provider, it would share its mistakes.
package awssim
