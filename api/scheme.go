package api

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// NewScheme returns a scheme with the kinds of Kubernetes, the kinds of this module in their current versions,
// Provisioner and AWSNodeTemplate, CapacityBuffer and CapacityQuota.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), karpv1.AddToScheme(scheme), kwokv1alpha1.AddToScheme(scheme),
		awsv1.AddToScheme(scheme), karpv1alpha5.AddToScheme(scheme), awsv1alpha1.AddToScheme(scheme),
		karpv1alpha1.AddToScheme(scheme), autoscalingv1beta1.AddToScheme(scheme))
}
