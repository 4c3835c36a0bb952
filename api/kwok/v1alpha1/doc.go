// Package v1alpha1 holds the wire types of the API group karpenter.kwok.sh, version
// v1alpha1. KWOKNodeClass is the node class of the kwok provider. Its machines are
// simulated, and kwok's controller simulates their kubelets.
//
//	NodePool.spec.template.spec.nodeClassRef --> KWOKNodeClass
//	                                             (registration delay of nodes)
//
// The CRD generated from it (api/crds) makes every class Ready immediately: its status
// has a default, because there is no cloud account to wait for.
//
// The package does not depend on the provider that reads it, the engine or any other API
// group. It does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.kwok.sh
package v1alpha1
