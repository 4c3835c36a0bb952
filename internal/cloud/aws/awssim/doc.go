// Package awssim is an AWS to test against: one http.Handler that speaks the wire protocols of EC2 (Query, XML), SSM, SQS
// and Pricing (JSON), EKS (REST, JSON), IAM and STS (Query, XML) for the calls that a node provider makes, and behaves as
// AWS documents, limits and refusals included. Clients are the unmodified SDK with its endpoint set; every request is
// told apart by the credential scope that the SDK signs. Signatures are not verified.
//
//	request -> faults (freeze, slow, fail, lose, garble) -> credentials -> permission -> token bucket -> parameters -> action
//	                                                                                                      |
//	clock  -> due events: pending -> running -> booted -> shutting-down -> terminated -> forgotten        v
//	                      spot notices, pools that shrink, messages that expire   ------------>   one state, one lock
//
// What is real: the instance types, their zones and on-demand prices (package catalog), EC2's request and resource rate
// limits, the names of parameters and errors. What is invented, by a model that depends on Options.Seed and the clock
// only: capacity of the pools per (type, zone, capacity type), spot prices, delays, image ids. Keep those out of golden
// files. Texts of error messages are AWS's where they are known to be read by programs, and ours elsewhere.
//
// A parameter that is not simulated is refused, never ignored: a test must not pass because nobody looked. The comment
// of each action names its page of the AWS API reference.
//
// Tests break things by the methods of Cloud (Drain, Inject, Interrupt, Spoil, ReleaseImages ...) or by POSTing JSON to
// /_admin/ (see admin_http.go). Options.Hook is told when an instance has booted and when it is gone, with the user data
// that it was launched with, so that a sandbox can make a Node of it.
//
// In a test, with the SDK on a virtual clock (testing/synctest):
//
//	cloud, err := awssim.New(awssim.Options{Queue: "queue"})
//	pipe := awssim.NewPipe()
//	go cloud.Serve(ctx, pipe)
//	cfg := aws.Config{Region: "us-east-1", HTTPClient: pipe.HTTPClient(), BaseEndpoint: aws.String(awssim.Endpoint), Credentials: ...}
//
// The package must not know the provider that it tests: it imports nothing below internal/cloud/aws but the catalogue's
// data, and no SDK outside of its tests. Sharing code with the provider would agree with its mistakes.
package awssim
