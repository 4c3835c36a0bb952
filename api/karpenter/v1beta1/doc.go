// Package v1beta1 holds the wire types NodePool and NodeClaim of the API group karpenter.sh, version v1beta1, which
// manifests from 2023 and 2024 use. They are served beside v1 and never stored.
//
//	v1beta1 manifest --API server--> conversion webhook (internal/legacy/v1beta1) --> v1, the stored version
//
// Fields of v1 that v1beta1 never had (terminationGracePeriod, replicas, reasons of budgets, the operators Gte and Lte,
// the policy Balanced) are part of these types under their v1 names. So objects can be read, edited and written back
// through v1beta1 without loss. As a result, every v1beta1 manifest is accepted, and some others too.
//
// The types exist for their schemas, from which api/crds is generated, and for tests. Conversion works on the JSON of
// objects, so that it does not change the spelling of durations and quantities.
//
// The package does not know how versions are converted.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1beta1
