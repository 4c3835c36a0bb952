package class

import (
	"slices"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// annotationValues are the values of annotations of classes that only this project defines.
var annotationValues = []struct {
	key    string
	values []string
}{
	{awsv1.AnnotationAutoRecovery, []string{"default", awsv1.Disabled}},
	{awsv1.AnnotationPrefixDelegation, []string{"true", "false"}},
}

// annotations checks the values of this project's annotations. A value that is not known would have no effect, without
// a sign of it.
func annotations(class *awsv1.EC2NodeClass, _ discovery.Facts) *finding {
	for _, a := range annotationValues {
		if value, set := class.Annotations[a.key]; set && !slices.Contains(a.values, value) {
			return wrong(awsv1.ReasonInvalidAnnotation, "metadata.annotations[%s]: is %q, want %s", a.key, value, strings.Join(a.values, " or "))
		}
	}
	return nil
}
