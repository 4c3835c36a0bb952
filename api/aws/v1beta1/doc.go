// Package v1beta1 holds the wire type of the API group karpenter.k8s.aws, version v1beta1: EC2NodeClass as manifests from
// 2023 and 2024 have it. It is served beside v1 and never stored; internal/legacy/beta converts.
//
// Two things differ from v1: amiSelectorTerms may be left out, which means the recommended images of amiFamily, and
// amiFamily may be Ubuntu. Instance metadata travels two hops by default. What v1 has and v1beta1 never had is here under
// its names of v1 (aliases, kubelet, capacity reservations ...), so that it can be read, edited and written back.
//
// It must not know how versions are converted.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1beta1
