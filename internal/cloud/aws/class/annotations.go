package class

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/expression"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
)

// annotationValues are the values of annotations of classes that only this project defines.
var annotationValues = []struct {
	key    string
	values []string
}{
	{awsv1.AnnotationAutoRecovery, []string{"default", awsv1.Disabled}},
	{awsv1.AnnotationOpenReservations, []string{"true", "false"}},
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
	return volumeSizes(class)
}

// volumeSizes checks the expressions for sizes of volumes.
func volumeSizes(class *awsv1.EC2NodeClass) *finding {
	sizes, err := class.VolumeSizes()
	if err != nil {
		return wrong(awsv1.ReasonInvalidAnnotation, "%s", err)
	}
	devices := launch.VolumeDevices(class)
	for _, device := range slices.Sorted(maps.Keys(sizes)) {
		if !slices.Contains(devices, device) {
			return wrong(awsv1.ReasonInvalidAnnotation, "metadata.annotations[%s]: names the device %s, and the class has the EBS volumes [%s]; "+
				"name one of these, or add the device to spec.blockDeviceMappings", awsv1.AnnotationVolumeSize, device, strings.Join(devices, " "))
		}
		if _, err := expression.Compile(sizes[device]); err != nil {
			return wrong(awsv1.ReasonInvalidAnnotation, "metadata.annotations[%s]: %s=%s is no size in GiB nor an expression of it: %s",
				awsv1.AnnotationVolumeSize, device, sizes[device], err)
		}
		// Results of other expressions depend on the type: evaluated checks them.
		if gib, err := strconv.Atoi(sizes[device]); err == nil && gib < 1 {
			return wrong(awsv1.ReasonInvalidAnnotation, "metadata.annotations[%s]: %s=%d, want 1 GiB or more",
				awsv1.AnnotationVolumeSize, device, gib)
		}
	}
	return nil
}
