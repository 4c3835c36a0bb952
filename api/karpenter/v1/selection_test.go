package v1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestSelectionValidate checks that pools are selected only by labels that all their claims have, with one value.
func TestSelectionValidate(t *testing.T) {
	rules := CoreRules().With(LabelRules{
		WellKnown: []string{"cloud.example.com/size"}, RestrictedDomains: []string{"cloud.example.com"},
		Aliases: map[string]string{"old.example.com/pool": LabelNodePool},
	})
	for _, test := range []struct{ selector, refused string }{
		{"", ""},
		{"example.org/cell=a", ""},
		{"team in (a, b), !shared", ""},
		{"karpenter.sh/nodepool in (a, b)", ""},
		{"topology.kubernetes.io/zone=z", "topology.kubernetes.io/zone"},
		{"failure-domain.beta.kubernetes.io/zone=z", "failure-domain.beta.kubernetes.io/zone"},
		{"example.org/cell=a,karpenter.sh/capacity-type!=spot", "karpenter.sh/capacity-type"},
		{"!karpenter.sh/registered", "karpenter.sh/registered"},
		{"cloud.example.com/size", "cloud.example.com/size"},
		{"cloud.example.com/class=default", "cloud.example.com/class"},
		{"kubernetes.io/hostname=a", "kubernetes.io/hostname"},
		{"old.example.com/pool=a", "old.example.com/pool"},
	} {
		selector, err := labels.Parse(test.selector)
		if err != nil {
			t.Fatal(err)
		}
		switch err := (Selection{selector}).Validate(rules); {
		case test.refused == "" && err != nil:
			t.Errorf("%q: %v", test.selector, err)
		case test.refused != "" && (err == nil || !strings.Contains(err.Error(), "the label "+test.refused+" is") ||
			!strings.Contains(err.Error(), "or karpenter.sh/nodepool")):
			t.Errorf("%q: error %v, want one that names %s and %s", test.selector, err, test.refused, LabelNodePool)
		}
	}
	if err := (Selection{}).Validate(rules); err != nil || (Selection{}).Names("team") {
		t.Errorf("the selection of all: error %v, and it names a label: %v", err, (Selection{}).Names("team"))
	}
}
