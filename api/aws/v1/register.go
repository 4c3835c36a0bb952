package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of EC2NodeClass, and the domain of the AWS provider's labels.
const Group = "karpenter.k8s.aws"

// Kind is the kind in a NodePool's nodeClassRef.
const Kind = "EC2NodeClass"

var (
	// GroupVersion is karpenter.k8s.aws/v1.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1"}
	// SchemeBuilder collects the registration of this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers this package's kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &EC2NodeClass{}, &EC2NodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
