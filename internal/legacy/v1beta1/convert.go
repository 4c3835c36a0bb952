package v1beta1

import (
	"errors"
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
	// Ignored is called with each annotation of an object that is not read because of a bound. The object is converted
	// as if the annotation had no meaning. Ignored may be nil.
	Ignored func(*BoundError)
}

// Convert returns the object in another version of its group. apiVersion is that of v1 or v1beta1. Convert does not
// modify the object, and the result shares no data with it. An error means that the kind or a version is not
// supported, or that what the other version does not have is too much for an annotation (BoundError).
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
	c.report(object)
	beta := runtime.DeepCopyJSON(object)
	kept, why := take(beta, AnnotationV1)
	c.ignored(object, AnnotationV1, why)
	unannotate(beta, AnnotationV1Beta1) // it is only valid in v1, and the other one only in v1beta1
	old, err := c.newer(m, group, beta)
	if err != nil {
		return nil, err
	}
	if kept.Of != "" {
		kept.restore(digest(beta), old)
	}
	return old, nil
}

// FromV1 converts an object of v1 to v1beta1. If what its annotation restores is too much to be recorded again, the
// annotation is ignored. It remains part of the object in v1.
func (c Converter) FromV1(object map[string]any) (map[string]any, error) {
	m, group, err := mappingOf(object)
	if err != nil {
		return nil, err
	}
	c.report(object)
	now := tidy(runtime.DeepCopyJSON(object))
	beta := runtime.DeepCopyJSON(now)
	kept, why := take(beta, AnnotationV1Beta1)
	older(m, group, beta, kept)
	err = c.record(m, group, beta, now)
	if bound := (*BoundError)(nil); errors.As(err, &bound) && kept.Of != "" {
		why = "what it restores is too much to be recorded: " + bound.Why
		beta = runtime.DeepCopyJSON(now)
		unannotate(beta, AnnotationV1Beta1)
		older(m, group, beta, complement{})
		err = c.record(m, group, beta, now)
	}
	if err != nil {
		return nil, err
	}
	c.ignored(object, AnnotationV1Beta1, why)
	return beta, nil
}

// record writes what the object of v1 has and the reverse mapping of the object of v1beta1 would not restore.
func (c Converter) record(m mapping, group string, beta, now map[string]any) error {
	unannotate(beta, AnnotationV1)
	again, err := c.newer(m, group, beta)
	if err != nil {
		return err
	}
	return keep(beta, AnnotationV1, differences(again, now))
}

// newer returns the object in v1, with a record of what the reverse mapping would not restore.
func (c Converter) newer(m mapping, group string, beta map[string]any) (map[string]any, error) {
	now := runtime.DeepCopyJSON(beta)
	m.to(c, now)
	now["apiVersion"] = group + "/" + v1
	tidy(now)
	back := runtime.DeepCopyJSON(now)
	m.from(back)
	return now, keep(now, AnnotationV1Beta1, differences(tidy(back), beta))
}

// older converts the object to v1beta1, with everything restored that was recorded.
func older(m mapping, group string, object map[string]any, kept complement) {
	of := ""
	if kept.Of != "" {
		of = digest(object)
	}
	m.from(object)
	object["apiVersion"] = group + "/" + v1beta1
	kept.restore(of, tidy(object))
}

// report calls Ignored for the annotations that the mappings read as JSON.
func (c Converter) report(object map[string]any) {
	if c.Ignored == nil {
		return
	}
	for _, key := range []string{AnnotationKubelet, AnnotationNodeClassReference} {
		if text, ok := annotation(object, key); ok {
			c.ignored(object, key, tooMuch(text))
		}
	}
}

func (c Converter) ignored(object map[string]any, annotation, why string) {
	if c.Ignored != nil && why != "" {
		c.Ignored(beyond(object, annotation, why))
	}
}
