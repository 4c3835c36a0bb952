package migrate

import (
	"strings"
	"testing"
)

// lists contains lists, and their output.
var lists = []struct {
	name, text string
	prints     []string // parts of the output
	stays      bool
}{
	{"a list of a kind whose members leave it out",
		"apiVersion: karpenter.sh/v1alpha5\nkind: ProvisionerList\nitems:\n- metadata: {name: a}\n  spec: {providerRef: {name: c}}\n- metadata: {name: b}\n  spec: {providerRef: {name: c}}\n", []string{"kind: NodePool\nmetadata:\n  name: a\n", "kind: NodePool\nmetadata:\n  name: b\n"}, false},
	{"of v1beta1", "apiVersion: karpenter.sh/v1beta1\nkind: NodePoolList\nitems:\n- metadata: {name: a}\n  spec: {template: {spec: {nodeClassRef: {name: c}}}}\n", []string{"apiVersion: karpenter.sh/v1\n", "kind: NodePool\n"}, false},
	{"members that say it", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: karpenter.sh/v1alpha5\n  kind: Provisioner\n  metadata: {name: a}\n  spec: {providerRef: {name: c}}\n", []string{"kind: NodePool\n"}, false},
	{"lists within a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: karpenter.sh/v1alpha5\n    kind: ProvisionerList\n    items:\n    - metadata: {name: a}\n      spec: {providerRef: {name: c}}\n", []string{"kind: NodePool\n"}, false},
	{"of others", "apiVersion: v1\nkind: ServiceList\nitems:\n- metadata: {name: a} # one\n", nil, true},
	{"members without a kind", "apiVersion: v1\nkind: List\nitems:\n- metadata: {name: a}\n", nil, true},
	{"of nothing", "apiVersion: karpenter.sh/v1\nkind: NodePoolList\nitems: []\n", nil, true},
}

// TestLists compares the results for lists.
func TestLists(t *testing.T) {
	for _, test := range lists {
		t.Run(test.name, func(t *testing.T) {
			result := Run([]File{{Name: "in", Text: []byte(test.text)}}, Options{Check: judge(t)})
			for _, part := range test.prints {
				if !strings.Contains(string(result.Manifests), part) {
					t.Errorf("printed is\n%s, want it to contain %q", result.Manifests, part)
				}
			}
			if stays := string(result.Manifests) == test.text; stays != test.stays {
				t.Errorf("it is kept: %t, want %t; printed is\n%s", stays, test.stays, result.Manifests)
			}
		})
	}
}

// TestDeepLists reads lists that are nested as deep as possible, which would take forever if each level were read
// twice.
func TestDeepLists(t *testing.T) {
	deep := `{"apiVersion":"karpenter.sh/v1alpha5","kind":"Provisioner","metadata":{"name":"a"},"spec":{"providerRef":{"name":"c"}}}`
	for range 60 {
		deep = `{"apiVersion":"v1","kind":"List","items":[` + deep + `]}`
	}
	result := Run([]File{{Name: "in", Text: []byte(deep)}}, Options{})
	if !strings.Contains(string(result.Manifests), "kind: NodePool\n") {
		t.Errorf("printed is %s", result.Manifests)
	}
}

// TestFirstGroup covers Provisioners of 2021, which cannot be translated.
func TestFirstGroup(t *testing.T) {
	text := "apiVersion: provisioning.karpenter.sh/v1alpha1\nkind: Provisioner\nmetadata:\n  name: a\nspec: {}\n"
	result := Run([]File{{Name: "in", Text: []byte(text)}}, Options{Check: judge(t)})
	switch {
	case string(result.Manifests) != text:
		t.Errorf("string(result.Manifests) is %v, want %v, printed is\n%s\nreported\n%s", string(result.Manifests),
			text, result.Manifests, result.Report.Text())
	case result.Report.Count(Advice) != 1:
		t.Errorf("result.Report.Count(Advice) is %v, want 1\nreported\n%s", result.Report.Count(Advice), result.Report.Text())
	case result.Report.Count(Impossible) != 0:
		t.Errorf("result.Report.Count(Impossible) is %v, want 0\nreported\n%s", result.Report.Count(Impossible), result.Report.Text())
	}
}
