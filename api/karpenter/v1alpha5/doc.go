// Package v1alpha5 is the Provisioner of karpenter.sh, as manifests of 2021 to 2023 have it. The definition serves it as
// v1alpha3, v1alpha4 and v1alpha5, all with one schema that refuses and prunes nothing: an object is kept as it was written,
// and which version that was is known from metadata.managedFields.
//
//	Provisioner --internal/controller/legacy--> NodePool and node class, which it owns
//
// Only the status is typed: it is ours. The spec is untyped, because package internal/legacy reads what is there, valid or
// not, and tells what it makes of it.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha5
