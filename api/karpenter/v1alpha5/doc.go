// Package v1alpha5 holds the wire type Provisioner of the API group karpenter.sh, which manifests from 2021 to 2023
// use. The CustomResourceDefinition serves it as v1alpha3, v1alpha4 and v1alpha5. All versions share one schema, which
// rejects and prunes nothing: an object is stored as written. metadata.managedFields shows in which version it was
// written.
//
//	Provisioner --internal/legacy/provisioner--> NodePool and node class, owned by it
//
// Only the status is typed. This controller writes it. The spec is untyped, because package internal/legacy/v1alpha5 parses
// any spec, valid or not, and reports its translation.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha5
