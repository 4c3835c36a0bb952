package class

import (
	"context"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/expression"
)

// expressionsOf returns the first expression in the kubelet's settings that cannot be evaluated for any type.
func expressionsOf(class *awsv1.EC2NodeClass, enabled bool) *finding {
	for _, e := range class.Spec.Kubelet.Expressions() {
		if !enabled {
			return wrong(awsv1.ReasonKubeletExpressionsDisabled, "%s: %q is an expression, and the feature gate NodeClassCEL is off; "+
				"set --aws-feature-gates=NodeClassCEL=true (settings.awsFeatureGates.nodeClassCEL), or use %s", e.Path(), e.Text, plainValue(e))
		}
		if _, err := expression.Compile(e.Text); err != nil {
			return wrong(awsv1.ReasonKubeletExpressionInvalid, "%s: %q is neither %s nor a valid expression: %s",
				e.Path(), e.Text, plainValue(e), err)
		}
	}
	return nil
}

// plainValue describes a value that is no expression.
func plainValue(e awsv1.Expression) string {
	switch {
	case e.Field == awsv1.FieldMaxPods:
		return "a number such as 110"
	case e.Resource == "cpu":
		return "a quantity such as 100m"
	}
	return "a quantity such as 1Gi"
}

// evaluated returns the first expression that has no valid result for a type of the class. The conditions of discovery
// must be true, because types depend on them.
func (r *Reconciler) evaluated(ctx context.Context, class *awsv1.EC2NodeClass) (*finding, error) {
	_, sizes := class.Annotations[awsv1.AnnotationVolumeSize]
	if r.Evaluate == nil || !sizes && len(class.Spec.Kubelet.Expressions()) == 0 {
		return nil, nil
	}
	failure, err := r.Evaluate(ctx, class)
	if err != nil || failure == "" {
		return nil, err
	}
	if strings.HasPrefix(failure, "metadata.annotations") {
		return wrong(awsv1.ReasonInvalidAnnotation, "%s", failure), nil
	}
	return wrong(awsv1.ReasonKubeletExpressionEvaluationFailed, "%s", failure), nil
}
