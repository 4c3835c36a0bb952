// Package api is the root of the wire types: a folder per API group, a folder per
// version. It holds only the command that generates, from the markers in those
// folders, the deep copies beside the types and the CustomResourceDefinitions in
// api/crds:
//
//	types with markers --controller-gen--> schemas --api/crds/internal/finish--> api/crds/*.yaml
//
// controller-gen is pinned in tools/go.mod. The second step adds what its markers
// cannot say about types that are not ours (taints, conditions) and about the labels
// of providers.
package api

//go:generate go -C ../tools tool controller-gen object crd paths=../api/karpenter/v1/... paths=../api/karpenter/v1alpha5/... paths=../api/karpenter/v1beta1/... paths=../api/kwok/v1alpha1/... paths=../api/aws/v1/... paths=../api/aws/v1alpha1/... paths=../api/aws/v1beta1/... output:crd:artifacts:config=../api/crds
//go:generate go run ./crds/internal/finish ./crds
