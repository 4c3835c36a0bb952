// Package v1beta1 holds the wire type EC2NodeClass of the API group karpenter.k8s.aws, version v1beta1, which manifests
// from 2023 and 2024 use. It is served beside v1 and never stored. internal/legacy/v1beta1 converts it.
//
// It differs from v1 in three ways: amiSelectorTerms is optional and defaults to the recommended images of amiFamily,
// amiFamily may be Ubuntu, and the default hop limit of instance metadata is 2. Fields of v1 that v1beta1 never had
// (aliases, kubelet, capacity reservations ...) are part of the type under their v1 names, so that objects can be read,
// edited and written back without loss.
//
// The package does not know how versions are converted.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1beta1
