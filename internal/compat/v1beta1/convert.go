package v1beta1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are the versions, and the groups whose kinds are converted.
const (
	v1       = "v1"
	v1beta1  = "v1beta1"
	core     = "karpenter.sh"
	aws      = "karpenter.k8s.aws"
	awsClass = "EC2NodeClass"
)

// These annotations of an object of one version hold what the other version contains and the first cannot represent.
const (
	// AnnotationKubelet, on a pool or claim of v1, is its spec.template.spec.kubelet or spec.kubelet of v1beta1, as
	// JSON. It takes precedence over the kubelet settings of the node class. The name is that of upstream Karpenter.
	AnnotationKubelet = karpv1.AnnotationKubelet
	// AnnotationNodeClassReference, on a pool or claim of v1, is its nodeClassRef of v1beta1, as JSON, if it differs
	// from the conversion of v1's. The name is that of upstream Karpenter.
	AnnotationNodeClassReference = "compatibility.karpenter.sh/v1beta1-nodeclass-reference"
	// AnnotationUbuntu, on an EC2NodeClass of v1, records that its amiFamily was Ubuntu in v1beta1, and which other
	// fields the conversion added, separated by commas. The name is that of upstream Karpenter.
	AnnotationUbuntu = "compatibility.karpenter.k8s.aws/v1beta1-ubuntu"
	// AnnotationV1Beta1, on an object of v1, holds everything else that only v1beta1 contains (complement.go).
	AnnotationV1Beta1 = "karpenter-go.github.io/v1beta1"
	// AnnotationV1, on an object of v1beta1, holds everything else that only v1 contains.
	AnnotationV1 = "karpenter-go.github.io/v1"
)

// ExpiryNever means no expiration.
const ExpiryNever = "Never"

// Converter converts objects. The zero value is ready to use. It is safe for concurrent use if Expiry is.
type Converter struct {
	// Expiry returns the expireAfter of the NodePool with this name, such as 720h, or an empty string if it is
	// unknown. It is called for claims of v1beta1, which do not contain it. If it is unknown, they never expire.
	Expiry func(pool string) string
}

// Convert returns the object in another version of its group. apiVersion is that of v1 or v1beta1. Convert does not
// modify the object, and the result shares no data with it. An error means that the kind or a version is not
// supported.
func (c Converter) Convert(object map[string]any, apiVersion string) (map[string]any, error) {
	has, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, from, _ := strings.Cut(has, "/")
	wantGroup, to, _ := strings.Cut(apiVersion, "/")
	if _, known := mappings[group+"/"+kind]; !known || group != wantGroup {
		return nil, fmt.Errorf("converting %s of %s to %s: want a NodePool or NodeClaim of %s, or an EC2NodeClass of %s", kind, has, apiVersion, core, aws)
	}
	switch {
	case from == to && (to == v1 || to == v1beta1):
		return runtime.DeepCopyJSON(object), nil
	case from == v1beta1 && to == v1:
		return c.ToV1(object)
	case from == v1 && to == v1beta1:
		return c.FromV1(object)
	}
	return nil, fmt.Errorf("converting %s of %s to %s: want %s or %s", kind, has, apiVersion, v1, v1beta1)
}

// mapping is the plain conversion of one kind. Both functions modify the object in place.
type mapping struct {
	to   func(Converter, map[string]any)
	from func(map[string]any)
}

var mappings = map[string]mapping{
	core + "/NodePool":   {poolToV1, poolFromV1},
	core + "/NodeClaim":  {claimToV1, claimFromV1},
	aws + "/" + awsClass: {classToV1, classFromV1},
}

// mappingOf returns the mapping of the object's kind, and its group.
func mappingOf(object map[string]any) (mapping, string, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	m, known := mappings[group+"/"+kind]
	if !known {
		return mapping{}, "", fmt.Errorf("converting %s of %s: want a NodePool or NodeClaim of %s, or an EC2NodeClass of %s", kind, apiVersion, core, aws)
	}
	return m, group, nil
}

// ToV1 converts an object of v1beta1 to v1.
func (c Converter) ToV1(object map[string]any) (map[string]any, error) {
	m, group, err := mappingOf(object)
	if err != nil {
		return nil, err
	}
	beta := runtime.DeepCopyJSON(object)
	kept := take(beta, AnnotationV1)
	unannotate(beta, AnnotationV1Beta1) // it is only valid in v1, and the other one only in v1beta1
	old := c.newer(m, group, beta)
	kept.restore(digest(beta), old)
	return old, nil
}

// FromV1 converts an object of v1 to v1beta1.
func (c Converter) FromV1(object map[string]any) (map[string]any, error) {
	m, group, err := mappingOf(object)
	if err != nil {
		return nil, err
	}
	now := tidy(runtime.DeepCopyJSON(object))
	beta := older(m, group, now)
	unannotate(beta, AnnotationV1)
	keep(beta, AnnotationV1, differences(c.newer(m, group, beta), now))
	return beta, nil
}

// newer returns the object in v1, with a record of what the reverse mapping would not restore.
func (c Converter) newer(m mapping, group string, beta map[string]any) map[string]any {
	now := runtime.DeepCopyJSON(beta)
	m.to(c, now)
	now["apiVersion"] = group + "/" + v1
	tidy(now)
	back := runtime.DeepCopyJSON(now)
	m.from(back)
	keep(now, AnnotationV1Beta1, differences(tidy(back), beta))
	return now
}

// older returns the object in v1beta1, with everything restored that was recorded.
func older(m mapping, group string, now map[string]any) map[string]any {
	beta := runtime.DeepCopyJSON(now)
	kept := take(beta, AnnotationV1Beta1)
	of := digest(beta)
	m.from(beta)
	beta["apiVersion"] = group + "/" + v1beta1
	kept.restore(of, tidy(beta))
	return beta
}
