package v1

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func hashedPool() *NodePool {
	return &NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: NodePoolSpec{Template: NodeClaimTemplate{
			ObjectMeta: ObjectMeta{
				Labels:      map[string]string{"team": "a", "tier": "web"},
				Annotations: map[string]string{"note": "b"},
			},
			Spec: NodeClaimTemplateSpec{
				Taints: []corev1.Taint{
					{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule},
					{Key: "c", Effect: corev1.TaintEffectNoExecute},
				},
				StartupTaints:          []corev1.Taint{{Key: "d", Effect: corev1.TaintEffectNoSchedule}, {Key: "e", Effect: corev1.TaintEffectNoSchedule}},
				Requirements:           []Requirement{{Key: "x", Operator: OperatorExists}},
				NodeClassRef:           NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
				TerminationGracePeriod: &metav1.Duration{Duration: time.Hour},
				ExpireAfter:            DurationOf(720 * time.Hour),
			},
		}},
	}
}

// These values change only together with HashVersion. Otherwise an upgrade of the controller would replace
// every node of a fleet.
func TestHashIsStable(t *testing.T) {
	if HashVersion != "karpenter-go-v3" {
		t.Fatalf("hash version is %s: update the hashes in this test", HashVersion)
	}
	for _, test := range []struct {
		name string
		pool *NodePool
		want string
	}{
		{"every field", hashedPool(), "12313575230979831489"},
		{"no field", &NodePool{}, "15475058830161185216"},
	} {
		if got := test.pool.Hash(); got != test.want {
			t.Errorf("%s: hash is %s, want %s", test.name, got, test.want)
		}
	}
}

func TestHashSeesEveryListedField(t *testing.T) {
	seen := map[string]string{hashedPool().Hash(): "nothing changed"}
	for _, test := range []struct {
		name   string
		change func(*NodeClaimTemplate)
	}{
		{"a label's value", func(p *NodeClaimTemplate) { p.ObjectMeta.Labels["team"] = "b" }},
		{"a label's key", func(p *NodeClaimTemplate) { delete(p.ObjectMeta.Labels, "team"); p.ObjectMeta.Labels["teams"] = "a" }},
		{"one label less", func(p *NodeClaimTemplate) { delete(p.ObjectMeta.Labels, "team") }},
		{"no labels", func(p *NodeClaimTemplate) { p.ObjectMeta.Labels = nil }},
		{"labels' values swapped", func(p *NodeClaimTemplate) { p.ObjectMeta.Labels = map[string]string{"team": "web", "tier": "a"} }},
		{"an annotation's value", func(p *NodeClaimTemplate) { p.ObjectMeta.Annotations["note"] = "c" }},
		{"an annotation more", func(p *NodeClaimTemplate) { p.ObjectMeta.Annotations["more"] = "" }},
		{"labels and annotations swapped", func(p *NodeClaimTemplate) {
			p.ObjectMeta.Labels, p.ObjectMeta.Annotations = p.ObjectMeta.Annotations, p.ObjectMeta.Labels
		}},
		{"a taint's key", func(p *NodeClaimTemplate) { p.Spec.Taints[0].Key = "z" }},
		{"a taint's value", func(p *NodeClaimTemplate) { p.Spec.Taints[0].Value = "z" }},
		{"a taint's effect", func(p *NodeClaimTemplate) { p.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute }},
		{"a taint's time", func(p *NodeClaimTemplate) { p.Spec.Taints[0].TimeAdded = &metav1.Time{Time: time.Unix(5, 0)} }},
		{"one taint less", func(p *NodeClaimTemplate) { p.Spec.Taints = p.Spec.Taints[:1] }},
		{"no taints", func(p *NodeClaimTemplate) { p.Spec.Taints = nil }},
		{"a startup taint's key", func(p *NodeClaimTemplate) { p.Spec.StartupTaints[0].Key = "z" }},
		{"no startup taints", func(p *NodeClaimTemplate) { p.Spec.StartupTaints = nil }},
		{"taints and startup taints swapped", func(p *NodeClaimTemplate) {
			p.Spec.Taints, p.Spec.StartupTaints = p.Spec.StartupTaints, p.Spec.Taints
		}},
		{"the node class's group", func(p *NodeClaimTemplate) { p.Spec.NodeClassRef.Group = "z" }},
		{"the node class's kind", func(p *NodeClaimTemplate) { p.Spec.NodeClassRef.Kind = "z" }},
		{"termination grace period", func(p *NodeClaimTemplate) { p.Spec.TerminationGracePeriod.Duration = 2 * time.Hour }},
		{"termination grace period of zero", func(p *NodeClaimTemplate) { p.Spec.TerminationGracePeriod.Duration = 0 }},
		{"no termination grace period", func(p *NodeClaimTemplate) { p.Spec.TerminationGracePeriod = nil }},
		{"expiry", func(p *NodeClaimTemplate) { p.Spec.ExpireAfter = DurationOf(time.Hour) }},
		{"expiry at once", func(p *NodeClaimTemplate) { p.Spec.ExpireAfter = DurationOf(0) }},
		{"no expiry", func(p *NodeClaimTemplate) { p.Spec.ExpireAfter = NillableDuration{} }},
	} {
		pool := hashedPool()
		test.change(&pool.Spec.Template)
		hash := pool.Hash()
		if other, ok := seen[hash]; ok {
			t.Errorf("%s: hash is the same as with %s", test.name, other)
		}
		seen[hash] = test.name
	}
}

func TestHashIgnoresTheRest(t *testing.T) {
	want := hashedPool().Hash()
	for _, test := range []struct {
		name   string
		change func(*NodePool)
	}{
		{"order of taints", func(p *NodePool) { slices.Reverse(p.Spec.Template.Spec.Taints) }},
		{"order of startup taints", func(p *NodePool) { slices.Reverse(p.Spec.Template.Spec.StartupTaints) }},
		{"text of a duration", func(p *NodePool) {
			d, err := parseDuration("43200m")
			if err != nil {
				t.Fatal(err)
			}
			p.Spec.Template.Spec.ExpireAfter = d
		}},
		{"requirements", func(p *NodePool) { p.Spec.Template.Spec.Requirements = nil }},
		{"disruption", func(p *NodePool) {
			p.Spec.Disruption = Disruption{ConsolidateAfter: DurationOf(time.Hour), Budgets: []Budget{{Nodes: "1"}}}
		}},
		{"limits", func(p *NodePool) { p.Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")} }},
		{"weight", func(p *NodePool) { p.Spec.Weight = new(int32(5)) }},
		{"replicas", func(p *NodePool) { p.Spec.Replicas = new(int64(5)) }},
		{"metadata", func(p *NodePool) { p.Name, p.Labels = "other", map[string]string{"a": "b"} }},
		{"status", func(p *NodePool) { p.Status.Nodes = 5 }},
		{"the node class's name", func(p *NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "z" }},
		{"kubelet settings of v1beta1", func(p *NodePool) { p.Annotations = map[string]string{AnnotationKubelet: `{"maxPods":7}`} }},
	} {
		pool := hashedPool()
		test.change(pool)
		if got := pool.Hash(); got != want {
			t.Errorf("%s: hash changed from %s to %s", test.name, want, got)
		}
	}
	empty := &NodePool{}
	empty.Spec.Template.ObjectMeta = ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}
	empty.Spec.Template.Spec.Taints = []corev1.Taint{}
	if got, absent := empty.Hash(), (&NodePool{}).Hash(); got != absent {
		t.Errorf("empty maps and lists: hash is %s, want that of absent ones, %s", got, absent)
	}
}
