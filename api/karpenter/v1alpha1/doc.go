// Package v1alpha1 holds the wire types of the API group karpenter.sh, version v1alpha1. A NodeOverlay changes prices
// of offerings and adds resources to instance types (https://karpenter.sh/docs/concepts/nodeoverlays/).
//
//	NodeOverlay --+
//	              +--> the catalog of a NodePool, in plans and at launch
//	provider -----+
//
// Alpha: the controller reads NodeOverlays only with the feature gate NodeOverlay. The definition is always installed.
//
// The package does no I/O, and does not depend on the code that applies overlays.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha1
