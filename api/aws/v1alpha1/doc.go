// Package v1alpha1 is the AWSNodeTemplate of karpenter.k8s.aws, as manifests of 2022 and 2023 have it. Its schema refuses
// and prunes nothing: an object is kept as it was written.
//
//	AWSNodeTemplate --internal/controller/legacy--> EC2NodeClass, which it owns
//
// Only the status is typed: it is ours, with what its version documented. Package internal/legacy reads the spec.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1alpha1
