package v1alpha5

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOfTheSameAge verifies that, of Provisioners of the same age, the one that has the class with the template's
// name keeps it. Without one, the name decides.
func TestOfTheSameAge(t *testing.T) {
	objects := documents(t, []byte(`
{apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, metadata: {name: shared}, spec: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}
---
{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: plain, creationTimestamp: "2023-01-01T00:00:00Z"}, spec: {providerRef: {name: shared}}}
---
{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: dense, creationTimestamp: "2023-01-01T00:00:00Z"},
  spec: {providerRef: {name: shared}, kubeletConfiguration: {maxPods: 200}}}
`))
	for name, test := range map[string]struct {
		using map[string]string
		want  []string // the classes of plain and dense
	}{
		"no object has it":  {nil, []string{"shared-plain", "shared"}},
		"plain has it":      {map[string]string{"plain": "shared"}, []string{"shared", "shared-dense"}},
		"dense has it":      {map[string]string{"dense": "shared"}, []string{"shared-plain", "shared"}},
		"plain has its own": {map[string]string{"plain": "shared-plain"}, []string{"shared-plain", "shared"}},
		"both have had it":  {map[string]string{"plain": "shared", "dense": "shared"}, []string{"shared-plain", "shared"}},
	} {
		t.Run(name, func(t *testing.T) {
			results := Translate(objects, Settings{ClusterName: "test", DefaultInstanceProfile: "nodes", Using: test.using})
			var got []string
			for _, r := range results[1:] {
				got = append(got, r.Pool.Spec.Template.Spec.NodeClassRef.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooManyTerms verifies that terms are counted before they are expanded: a small object could expand to more
// terms than fit into memory.
func TestTooManyTerms(t *testing.T) {
	var words []string
	for i := range 300 {
		words = append(words, fmt.Sprintf("v%d", i))
	}
	many := strings.Join(words, ",")
	for name, spec := range map[string]string{
		"subnets": `subnetSelector: {a: "MANY", b: "MANY", c: "MANY"}, securityGroupSelector: {a: b}`,
		"groups":  `subnetSelector: {a: b}, securityGroupSelector: {a: "MANY", b: "MANY", c: "MANY", d: "MANY"}`,
		"ids":     `subnetSelector: {"aws::ids": "MANY"}, securityGroupSelector: {a: b}`,
		"images":  `subnetSelector: {a: b}, securityGroupSelector: {a: b}, amiSelector: {"aws::name": "MANY", "aws::owners": "MANY", a: "MANY"}`,
	} {
		t.Run(name, func(t *testing.T) {
			objects := documents(t, []byte(strings.ReplaceAll(
				"{apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, metadata: {name: x}, spec: {"+spec+"}}", "MANY", many)))
			result := Translate(objects, Settings{ClusterName: "test", DefaultInstanceProfile: "nodes"})[0]
			if len(result.Classes) > 0 || !strings.Contains(string(reported([]Result{result})), "terms, want at most 30") {
				t.Errorf("%d classes, notes:\n%s", len(result.Classes), reported([]Result{result}))
			}
		})
	}
}
