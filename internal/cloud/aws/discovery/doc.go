// Package discovery finds the AWS resources that an EC2NodeClass refers to: subnets, security groups, machine images
// and the instance profile, and the facts about the cluster that machines need.
//
//	EC2NodeClass --> queries --> EC2, SSM, IAM, EKS --> found --> Show...: status and conditions of the class
//	                  pure       caches, timeouts                  pure
//	                                   |
//	                                   +--> Addresses: the subnet for a machine, with pending launches counted
//
// The queries of a selector, the selection among the results (winners, groups of the right network) and their
// presentation (Show...) are pure functions. Subnets, Groups, Images, Profiles and Cluster make the calls and cache the
// results for the duration in Lifetimes. The clock is injected. They are safe for concurrent use; concurrent requests
// for the same resource share one call.
//
// Every call has a timeout. An AWS error is returned as a *CallError, with its kind (throttled, denied, ...) and
// request ID. The caller decides how to handle it. Earlier results are kept in spite of errors. Every call is reported
// to Options.Observe, for metrics.
//
// The package must not depend on a Kubernetes client, pools, claims or instance types, nor on how machines are
// launched.
package discovery
