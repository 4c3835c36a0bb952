// Package stack tests what deploy/aws makes in an AWS account, without an account: the CloudFormation template and the
// Terraform module are evaluated, each by its own language's rules, and what comes of them is held to the same facts.
//
//	cloudformation.yaml --intrinsic functions--+
//	                                           +--> account: roles, policies, queue, rules --> the same checks
//	terraform/*.tf ------hcl, expressions------+
//
// The facts are docs/aws-iam-policy.json, which a test of the provider holds to the calls of the code; the events that
// package notice reads; and AWS's published limits on names and documents. What CloudFormation or Terraform's provider do
// with a resource is not looked at: only which resources with which attributes they are told to make.
//
// The package has tests only.
package stack
