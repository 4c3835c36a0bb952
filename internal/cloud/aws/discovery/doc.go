// Package discovery finds what an EC2NodeClass speaks of in AWS: subnets, security groups, machine images and the
// instance profile, and what machines must know of the cluster.
//
//	EC2NodeClass --> queries --> EC2, SSM, IAM, EKS --> found --> Show...: status and conditions of the class
//	                  pure       caches, timeouts                  pure
//	                                   |
//	                                   +--> Addresses: which subnet a machine goes to, in-flight ones counted
//
// What a selector asks for (queries), what of the answer counts (winners, groups of the right network) and how it is told
// (Show...) are pure functions. Subnets, Groups, Images, Profiles and Cluster do the calls and keep the answers for as long
// as Lifetimes says; the clock is given to them. They may be used from several goroutines; two that ask for the same thing
// at the same time make one call.
//
// Every call has a timeout. An error of AWS comes back as a *CallError, with its kind (throttled, denied, ...) and request
// id; what to do about it is the caller's business, and nothing that was found before is forgotten because of it. Every
// call is told to Options.Observe, for metrics.
//
// The package must not know a Kubernetes client, pools, claims or instance types, nor how machines are launched.
package discovery
