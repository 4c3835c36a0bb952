// Package v1alpha1 holds the wire types of the API group karpenter.kwok.sh, version
// v1alpha1: KWOKNodeClass, the node class of the kwok provider, whose machines are
// simulated and whose kubelets are played by kwok's controller.
//
//	NodePool.spec.template.spec.nodeClassRef --> KWOKNodeClass
//	                                             (how late do nodes appear?)
//
// The CRD generated from it (api/crds) makes every class Ready from the start: its
// status has a default, because there is no cloud account to wait for.
//
// It must not know the provider that reads it, the engine, or any other group.
// Nothing here does I/O.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.kwok.sh
package v1alpha1
