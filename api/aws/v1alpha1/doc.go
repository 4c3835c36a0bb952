// Package v1alpha1 holds the wire type AWSNodeTemplate of the API group karpenter.k8s.aws, which manifests from 2022
// and 2023 use. Its schema rejects and prunes nothing: an object is stored as written.
//
//	AWSNodeTemplate --internal/legacy/provisioner--> EC2NodeClass, owned by it
//
// Only the status is typed. This controller writes it, with the fields that the version documented. Package
// internal/legacy/v1alpha5 parses the spec.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1alpha1
