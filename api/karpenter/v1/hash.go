package v1

import (
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
	corev1 "k8s.io/api/core/v1"
)

// HashVersion names the way Hash computes, in AnnotationNodePoolHashVersion. Hashes of
// different versions are never compared: a pool and its claims that carry another
// version (also one of another implementation) are stamped again instead of being
// taken for drifted. It changes whenever Hash gives another result for some pool,
// which includes a new default of a hashed field.
const HashVersion = "karpenter-go-v3"

// hashedTemplate is what the drift hash sees of a template. It is a type of its own, so
// that the API types can change without changing the hash. Names of types and fields
// are part of the hash. Left out on purpose: requirements, which have a drift check of
// their own; the name of the node class and AnnotationKubelet, because only the provider
// can tell whether machines of another class, or with settings that stand elsewhere,
// would differ (cloud.DriftDetector); and everything else outside the template.
type hashedTemplate struct {
	Labels                 map[string]string
	Annotations            map[string]string
	Taints                 []hashedTaint `hash:"set"`
	StartupTaints          []hashedTaint `hash:"set"`
	NodeClassGroup         string
	NodeClassKind          string
	TerminationGracePeriod *int64 // nanoseconds; nil: none
	ExpireAfter            *int64 // nanoseconds; nil: never
}

type hashedTaint struct {
	Key, Value, Effect string
	TimeAdded          *int64 // seconds since 1970
}

// Hash is the drift hash of the pool: a decimal uint64 that changes when, and only
// when, nodes made from the template before and after would differ in labels,
// annotations, taints, kind of node class, termination grace period or expiry. The order
// of taints and the spelling of durations ("60m", "1h") do not matter, and an empty map
// or list is like an absent one.
func (p *NodePool) Hash() string {
	template := p.Spec.Template
	input := hashedTemplate{
		Labels:         nilIfEmpty(template.ObjectMeta.Labels),
		Annotations:    nilIfEmpty(template.ObjectMeta.Annotations),
		Taints:         hashedTaints(template.Spec.Taints),
		StartupTaints:  hashedTaints(template.Spec.StartupTaints),
		NodeClassGroup: template.Spec.NodeClassRef.Group,
		NodeClassKind:  template.Spec.NodeClassRef.Kind,
	}
	if period := template.Spec.TerminationGracePeriod; period != nil {
		input.TerminationGracePeriod = new(int64(period.Duration))
	}
	if age := template.Spec.ExpireAfter; age.Duration != nil {
		input.ExpireAfter = new(int64(*age.Duration))
	}
	sum, err := hashstructure.Hash(input, hashstructure.FormatV2, &hashstructure.HashOptions{IgnoreZeroValue: true, ZeroNil: true})
	if err != nil {
		// The input has only strings, integers, maps and lists of them.
		panic("hashing a NodePool template: " + err.Error())
	}
	return strconv.FormatUint(sum, 10)
}

func nilIfEmpty(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

func hashedTaints(taints []corev1.Taint) []hashedTaint {
	var hashed []hashedTaint
	for _, taint := range taints {
		h := hashedTaint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)}
		if taint.TimeAdded != nil {
			h.TimeAdded = new(taint.TimeAdded.Unix())
		}
		hashed = append(hashed, h)
	}
	return hashed
}
