// Package stack tests what deploy/aws creates in an AWS account, without an account. The CloudFormation template and
// the Terraform module are evaluated, each by the rules of its own language, and the results are compared with the
// same facts.
//
//	cloudformation.yaml --intrinsic functions--+
//	                                           +--> account: roles, policies, queue, rules --> the same checks
//	terraform/*.tf ------hcl, expressions------+
//
// The facts are docs/aws-iam-policy.json, which a test of the provider compares with the requests of the code; the
// events that package notice reads; and AWS's published limits on names and documents. What CloudFormation or
// Terraform's provider do with a resource is not tested: only which resources with which attributes are created.
//
// The package contains only tests.
package stack
