package v1alpha5

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are the kinds that Translate reads.
const (
	KindProvisioner     = "Provisioner"     // in the group karpenter.sh
	KindAWSNodeTemplate = "AWSNodeTemplate" // in the group karpenter.k8s.aws
)

// These are the versions of Provisioners, from oldest to newest.
const (
	V1Alpha3 = "v1alpha3"
	V1Alpha4 = "v1alpha4"
	V1Alpha5 = "v1alpha5"
)

// Translates reports whether the object is of a kind and version that Translate reads.
func Translates(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Kind == KindProvisioner && kind.Group == karpv1.Group || kind.Kind == KindAWSNodeTemplate && kind.Group == awsv1.Group
}

// WrittenVersion returns the version in which most of the object's spec was written: that of the manager that owns
// most of its fields, or the later one of two. An API server returns objects in the requested version without
// changing them, and a small edit in another version does not change the meaning of the rest. Without records of
// managers, as in a file, it is the version in the object.
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

// meantVersion returns the version whose defaults apply to an object: the one in which it was written, unless that is
// the newest and the object has fields that only an older version had. This is the case for an object that was read
// from an API server, which returns all objects in the newest version, and applied again.
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
	case has("cluster"): // v1alpha3 required it
		return V1Alpha3
	case has("requirements"): // v0.4.1 still had provider.cluster
	case has("provider", "cluster"):
		return V1Alpha4
	}
	return written
}

// specFields returns how many fields of the spec a manager owns.
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
