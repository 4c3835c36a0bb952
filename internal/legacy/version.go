package legacy

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// The kinds that Translate reads.
const (
	KindProvisioner     = "Provisioner"     // of the group karpenter.sh
	KindAWSNodeTemplate = "AWSNodeTemplate" // of the group karpenter.k8s.aws
)

// The versions of Provisioners, from oldest to newest.
const (
	V1Alpha3 = "v1alpha3"
	V1Alpha4 = "v1alpha4"
	V1Alpha5 = "v1alpha5"
)

// Translates says whether the object is one of those that Translate reads.
func Translates(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Kind == KindProvisioner && kind.Group == karpv1.Group || kind.Kind == KindAWSNodeTemplate && kind.Group == awsv1.Group
}

// WrittenVersion is the version in which most of the object's spec was written: that of the manager that owns most of its
// fields, of two the later one. An API server gives objects in the version that it is asked for, without changing them,
// and a small edit in another version does not change what the rest meant. Without records of managers, as in a file, it
// is the version that the object says.
func WrittenVersion(object *unstructured.Unstructured) string {
	version, most := object.GroupVersionKind().Version, 0
	var when *metav1.Time
	for _, entry := range object.GetManagedFields() {
		fields := specFields(entry)
		later := fields == most && most > 0 && entry.Time != nil && (when == nil || when.Before(entry.Time))
		if fields > most || later {
			version, most, when = entry.APIVersion[strings.LastIndex(entry.APIVersion, "/")+1:], fields, entry.Time
		}
	}
	return version
}

// meantVersion is the version whose defaults an object goes by: the one that it was written in, unless that is the newest
// and the object has what only an older one had. That is what remains of an object that was read from an API server, which
// gives all of them in the newest version, and applied again.
func meantVersion(object *unstructured.Unstructured) string {
	written := WrittenVersion(object)
	if written != V1Alpha5 {
		return written
	}
	has := func(path ...string) bool {
		_, found, err := unstructured.NestedFieldNoCopy(object.Object, append([]string{"spec"}, path...)...)
		return found && err == nil
	}
	switch {
	case has("cluster"): // which v1alpha3 required
		return V1Alpha3
	case has("requirements"): // v0.4.1 still had provider.cluster
	case has("provider", "cluster"):
		return V1Alpha4
	}
	return written
}

// specFields is how many fields of the spec a manager owns.
func specFields(entry metav1.ManagedFieldsEntry) int {
	if entry.Subresource != "" || entry.FieldsV1 == nil {
		return 0
	}
	var owned struct {
		Spec map[string]any `json:"f:spec"`
	}
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
		return 0
	}
	return len(owned.Spec)
}
