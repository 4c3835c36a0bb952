// Package api is the root of the wire types: one directory per API group, one per version
// in it. The package itself only holds a scheme with all kinds, and the commands that generate the deep copies next to
// the types, and the CustomResourceDefinitions in api/crds, from the markers in those
// directories:
//
//	types with markers --controller-gen--> schemas --api/crds/internal/finish--> api/crds/*.yaml
//
// controller-gen is pinned in tools/go.mod. The second step adds what its markers cannot
// express about types of other modules (taints, conditions) and about the labels of
// providers.
package api

//go:generate go -C ../tools tool controller-gen object crd paths=../api/autoscaling/v1beta1/... paths=../api/karpenter/v1/... paths=../api/karpenter/v1alpha1/... paths=../api/karpenter/v1alpha5/... paths=../api/karpenter/v1beta1/... paths=../api/kwok/v1alpha1/... paths=../api/aws/v1/... paths=../api/aws/v1alpha1/... paths=../api/aws/v1beta1/... output:crd:artifacts:config=../api/crds
//go:generate go run ./crds/internal/finish ./crds
