package v1

import (
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
	corev1 "k8s.io/api/core/v1"
)

// HashVersion is the version of Hash, the value of AnnotationNodePoolHashVersion. Hashes of different versions
// are never compared. If a pool or its claims have another version, including one of another implementation,
// their annotations are rewritten, and the claims do not count as drifted. HashVersion changes whenever Hash
// returns another result for some pool, for example because of a new default of a hashed field.
const HashVersion = "karpenter-go-v3"

// hashedTemplate is the input of the drift hash. It is a separate type, so that the API types can change
// without changing the hash. Names of types and fields are part of the hash. It omits on purpose: requirements,
// which have their own drift check; the name of the node class and AnnotationKubelet, because only the provider
// can decide whether machines of another class, or with settings stored elsewhere, would differ
// (cloud.DriftDetector); and all fields outside the template.
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

// Hash returns the drift hash of the pool: a decimal uint64. It changes if and only if nodes created from the
// template before and after would differ in labels, annotations, taints, kind of node class, termination grace
// period or expiration. The order of taints and the spelling of durations ("60m", "1h") do not matter. An empty
// map or list equals an absent one.
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
		// The input consists of strings, integers, and maps and lists of them, so hashing cannot fail.
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
