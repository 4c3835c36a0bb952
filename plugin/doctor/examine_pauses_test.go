package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// TestExaminePauses verifies that each pause of a NodePool is a finding of its own, with its purpose, until it is
// over.
func TestExaminePauses(t *testing.T) {
	kind := schema.GroupKind{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}
	paused := func(until string) map[string]string {
		return map[string]string{karpv1.AnnotationPauses: `[{"reason": "Launch", "scope": "uid-a", "name": "launches for Deployment shop/web", ` +
			`"failures": 4, "at": "2026-11-20T11:00:00Z", "until": "` + until + `", "why": "the node was preempted"}]`}
	}
	removals := map[string]string{karpv1.AnnotationPauses: `[{"reason": "Removal", "scope": "*", ` +
		`"name": "involuntary removals of machines of all NodePools", "failures": 4, "at": "2026-11-20T11:53:00Z", "until": ` +
		`"2026-11-20T12:04:00Z"}]`}
	for _, c := range []struct {
		name   string
		change func(*karpv1.NodePool)
		want   []string
		says   string
	}{
		{"nothing", func(*karpv1.NodePool) {}, []string{}, ""},
		{"removals are paused", func(p *karpv1.NodePool) {
			p.Annotations = removals
		}, []string{"RemovalsPaused nodepool/a"}, "involuntary removals of machines of all NodePools are paused until 2026-11-20T12:04:00Z"},
		{"launches wait", func(p *karpv1.NodePool) {
			p.Annotations = paused("2026-11-20T12:04:00Z")
		}, []string{"Paused nodepool/a"}, "launches for Deployment shop/web are paused until 2026-11-20T12:04:00Z, after 4 failures in a row: the node was preempted"},
		{"launches waited", func(p *karpv1.NodePool) {
			p.Annotations = paused("2026-11-20T12:00:00Z")
		}, []string{}, ""},
		{"another provider's", func(p *karpv1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef.Kind = "Other"
			p.Annotations = removals
		}, []string{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kind.Group, Kind: kind.Kind, Name: "default"}
			pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
			pool.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
			c.change(&pool)
			f := &Facts{Now: now, NoElection: true, Pools: []karpv1.NodePool{pool}, Owned: []schema.GroupKind{kind}, Classes: []Class{{Kind: kind, Name: "default"}}}
			if diff := cmp.Diff(c.want, codes(f)); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			for _, finding := range Examine(f, Options{}) {
				if !strings.Contains(finding.Problem, c.says) {
					t.Errorf("%q does not contain %q", finding.Problem, c.says)
				}
			}
		})
	}
}
