package audit

import (
	"slices"
	"strconv"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// value is one value of a label, or its absence.
type value struct {
	text    string
	present bool
}

func just(text string) []value { return []value{{text, true}} }

var absent = []value{{}}

func canonical(key string) string { return label.Canonical(key) }

// allows implements the operators (Kubernetes API, NodeSelectorRequirement) for one value.
func allows(r label.Requirement, v value) bool {
	switch r.Operator {
	case label.In:
		return v.present && slices.Contains(r.Values, v.text)
	case label.NotIn:
		return !v.present || !slices.Contains(r.Values, v.text)
	case label.Exists:
		return v.present
	case label.DoesNotExist:
		return !v.present
	}
	if !v.present || len(r.Values) != 1 {
		return false
	}
	has, err := integer(v.text)
	bound, wrong := integer(r.Values[0])
	if err != nil || wrong != nil {
		return false
	}
	switch r.Operator {
	case label.Gt:
		return has > bound
	case label.Lt:
		return has < bound
	case label.Gte:
		return has >= bound
	case label.Lte:
		return has <= bound
	}
	return false
}

func integer(text string) (int64, error) {
	if len(text) > 0 && text[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

// allowed returns the values that all requirements of the key allow.
func allowed(reqs []label.Requirement, key string, values []value) []value {
	var kept []value
	for _, v := range values {
		ok := true
		for _, r := range reqs {
			ok = ok && (canonical(r.Key) != key || allows(r, v))
		}
		if ok {
			kept = append(kept, v)
		}
	}
	return kept
}

func says(reqs []label.Requirement, key string) bool {
	return slices.ContainsFunc(reqs, func(r label.Requirement) bool { return canonical(r.Key) == key })
}

// vocabulary holds, per label key, every value that is mentioned.
type vocabulary map[string]map[string]bool

// vocabularyOf collects the values that pods, pools, daemons, claims in flight and the plan mention. Values of types
// and offerings are not needed: they only restrict keys that types and offerings determine.
func vocabularyOf(snap *model.Snapshot, p *plan.Provision) vocabulary {
	words := vocabulary{}
	for _, g := range snap.Groups {
		words.add(g.Alternatives...)
		words.add(g.VolumeAlternatives...)
	}
	for _, d := range snap.Daemons {
		words.add(d.DaemonSpec.Alternatives...)
	}
	for _, pool := range snap.Pools {
		words.add(pool.PoolSpec.Requirements)
	}
	for _, n := range snap.Nodes {
		words.add(n.NodeSpec.Requirements)
	}
	for i := range p.Claims {
		words.add(p.Claims[i].Requirements)
	}
	return words
}

func (w vocabulary) add(lists ...[]label.Requirement) {
	for _, reqs := range lists {
		for _, r := range reqs {
			key := canonical(r.Key)
			if w[key] == nil {
				w[key] = map[string]bool{}
			}
			for _, v := range r.Values {
				w[key][v] = true
			}
		}
	}
}

// everything returns values of the key that represent all possible values: the mentioned values, the neighbors of
// each mentioned integer (so that there is an unmentioned integer between two bounds and beside each excluded one), a
// word that is not mentioned, and absence.
func (w vocabulary) everything(key string) []value {
	mentioned := w[key]
	all := map[string]bool{}
	for text := range mentioned {
		all[text] = true
		if n, err := integer(text); err == nil {
			all[strconv.FormatInt(n-1, 10)] = true
			all[strconv.FormatInt(n, 10)] = true
			all[strconv.FormatInt(n+1, 10)] = true
		}
	}
	word := "not-mentioned-anywhere"
	for mentioned[word] {
		word += "-"
	}
	values := []value{{}, {word, true}}
	for text := range all {
		values = append(values, value{text, true})
	}
	return values
}

// unknown returns a value that is present and that no requirement mentions, such as the hostname of a new node.
func (w vocabulary) unknown(key string) []value {
	word := "not-known-yet"
	for w[key][word] {
		word += "-"
	}
	return just(word)
}
