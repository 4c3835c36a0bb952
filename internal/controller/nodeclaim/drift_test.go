package nodeclaim

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
)

func hashed(hash, version string) map[string]string {
	return map[string]string{karpv1.AnnotationNodePoolHash: hash, karpv1.AnnotationNodePoolHashVersion: version}
}

func TestStaticDrift(t *testing.T) {
	for _, test := range []struct {
		name        string
		claim, pool map[string]string
		want        bool
	}{
		{"same hash", hashed("1", karpv1.HashVersion), hashed("1", karpv1.HashVersion), false},
		{"other hash", hashed("1", karpv1.HashVersion), hashed("2", karpv1.HashVersion), true},
		{"the claim's is of another version", hashed("1", "v3"), hashed("2", karpv1.HashVersion), false},
		{"the pool's is of another version", hashed("1", karpv1.HashVersion), hashed("2", "v3"), false},
		{"both are of another implementation", hashed("1", "v3"), hashed("2", "v3"), false},
		{"the claim has none", nil, hashed("2", karpv1.HashVersion), false},
		{"the pool has none", hashed("1", karpv1.HashVersion), nil, false},
		{"the pool has a version only", hashed("1", karpv1.HashVersion), hashed("", karpv1.HashVersion), false},
	} {
		claim, pool := &karpv1.NodeClaim{}, &karpv1.NodePool{}
		claim.Annotations, pool.Annotations = test.claim, test.pool
		if got := staticDrift(claim, pool); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

// Where no provider can say what another class would make of a machine, it is taken for a change.
func TestAnotherClass(t *testing.T) {
	claim, pool := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: born}}, &karpv1.NodePool{}
	claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "example.com", Kind: "Class", Name: "first"}
	for name, want := range map[string]string{"first": "", "second": karpv1.ReasonNodePoolDrifted} {
		pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "example.com", Kind: "Class", Name: name}
		for detector, want := range map[cloud.DriftDetector]string{nil: want, unconcerned{}: ""} {
			a := &Ageing{Clock: clocktesting.NewFakePassiveClock(born.Time), Timers: controller.Timers{TypeDrift: time.Hour, CatalogueRead: time.Minute}, detector: detector}
			if reason, unsure := a.drift(t.Context(), claim, pool); reason != want || unsure != nil {
				t.Errorf("class %s, detector %v: %q, %v, want %q", name, detector, reason, unsure, want)
			}
		}
	}
}

// unconcerned is a provider that makes the same of every class.
type unconcerned struct{}

func (unconcerned) Drifted(context.Context, *karpv1.NodeClaim, *karpv1.NodePool) (string, error) {
	return "", nil
}

func TestRequirementsDrift(t *testing.T) {
	rules := karpv1.CoreRules().With(karpv1.LabelRules{ValueAliases: map[string]map[string]string{corev1.LabelArchStable: {"x86_64": "amd64"}}})
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		corev1.LabelArchStable: "amd64", karpv1.LabelCapacityType: "spot", "cpu": "8", "team": "a",
	}}}
	for _, test := range []struct {
		name     string
		key      string
		operator karpv1.Operator
		values   []string
		want     bool
	}{
		{"in", "team", karpv1.OperatorIn, []string{"b", "a"}, false},
		{"no longer in", "team", karpv1.OperatorIn, []string{"b"}, true},
		{"not in", "team", karpv1.OperatorNotIn, []string{"b"}, false},
		{"excluded", "team", karpv1.OperatorNotIn, []string{"a"}, true},
		{"exists", "team", karpv1.OperatorExists, nil, false},
		{"forbidden", "team", karpv1.OperatorDoesNotExist, nil, true},
		{"greater", "cpu", karpv1.OperatorGt, []string{"7"}, false},
		{"not greater", "cpu", karpv1.OperatorGt, []string{"8"}, true},
		{"at most", "cpu", karpv1.OperatorLte, []string{"8"}, false},
		{"absent and required", "rack", karpv1.OperatorIn, []string{"1"}, true},
		{"absent and to exist", "rack", karpv1.OperatorExists, nil, true},
		{"absent though well-known", corev1.LabelTopologyZone, karpv1.OperatorIn, []string{"zone-a"}, true},
		{"absent and excluded", "rack", karpv1.OperatorNotIn, []string{"1"}, false},
		{"absent as it should be", "rack", karpv1.OperatorDoesNotExist, nil, false},
		{"an older name of the label", "beta.kubernetes.io/arch", karpv1.OperatorIn, []string{"amd64"}, false},
		{"another spelling of the value", corev1.LabelArchStable, karpv1.OperatorIn, []string{"x86_64"}, false},
		{"an older name, and another value", "beta.kubernetes.io/arch", karpv1.OperatorIn, []string{"arm64"}, true},
	} {
		pool := &karpv1.NodePool{}
		pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{
			{Key: karpv1.LabelCapacityType, Operator: karpv1.OperatorIn, Values: []string{"spot", "on-demand"}},
			{Key: test.key, Operator: test.operator, Values: test.values},
		}
		if got := requirementsDrift(claim, pool, rules); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

func TestTypeDrift(t *testing.T) {
	const reservation = "cloud.example.com/reservation"
	offered := func(zone, capacity string, rest ...cloud.Requirement) cloud.Offering {
		return cloud.Offering{Zone: zone, CapacityType: capacity, Requirements: rest}
	}
	in := func(key, value string) cloud.Requirement {
		return cloud.Requirement{Key: key, Operator: "In", Values: []string{value}}
	}
	types := []cloud.InstanceType{
		{Name: "small", Offerings: []cloud.Offering{offered("a", "spot"), offered("b", "on-demand")}},
		{Name: "rack", Offerings: []cloud.Offering{offered("a", "spot", in("rack", "7"))}},
		{Name: "booked", Offerings: []cloud.Offering{offered("a", "reserved", in(reservation, "r-1"), in("kind", "block")), offered("b", "on-demand")}},
		{Name: "nowhere"},
	}
	for _, test := range []struct {
		name   string
		labels map[string]string
		want   bool
	}{
		{"sold out is not gone", map[string]string{"type": "small", "zone": "a", "capacity": "spot"}, false},
		{"another zone", map[string]string{"type": "small", "zone": "b", "capacity": "spot"}, true},
		{"no such type", map[string]string{"type": "large", "zone": "a", "capacity": "spot"}, true},
		{"no offering", map[string]string{"type": "nowhere", "zone": "a", "capacity": "spot"}, true},
		{"type not known", map[string]string{"zone": "a", "capacity": "spot"}, false},
		{"zone not known", map[string]string{"type": "small", "capacity": "spot"}, false},
		{"the offering's own label", map[string]string{"type": "rack", "zone": "a", "capacity": "spot", "rack": "7"}, false},
		{"the offering's own label is another", map[string]string{"type": "rack", "zone": "a", "capacity": "spot", "rack": "8"}, true},
		{"another reservation by now", map[string]string{"type": "booked", "zone": "a", "capacity": "reserved", reservation: "r-0", "kind": "default"}, false},
		{"the reservation has ended and on-demand is there", map[string]string{"type": "booked", "zone": "b", "capacity": "reserved", reservation: "r-0"}, false},
		{"the reservation has ended and nothing is there", map[string]string{"type": "booked", "zone": "c", "capacity": "reserved", reservation: "r-0"}, true},
		{"reserved, of spot only", map[string]string{"type": "small", "zone": "a", "capacity": "reserved"}, true},
	} {
		claim := &karpv1.NodeClaim{}
		claim.Labels = map[string]string{}
		names := map[string]string{"type": corev1.LabelInstanceTypeStable, "zone": corev1.LabelTopologyZone, "capacity": karpv1.LabelCapacityType}
		for key, value := range test.labels {
			if name, short := names[key]; short {
				key = name
			}
			claim.Labels[key] = value
		}
		got, err := typeDrift(claim, market{types: types, reservation: reservation})
		if err != nil || got != test.want {
			t.Errorf("%s: %t, %v, want %t", test.name, got, err, test.want)
		}
	}
}

// A provider that forgot everything it sells must not cost a fleet.
func TestTypeDriftWithoutCatalogue(t *testing.T) {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelInstanceTypeStable: "small"}}}
	if got, err := typeDrift(claim, market{}); got || !errors.Is(err, errNoTypes) {
		t.Errorf("%t, %v, want an error", got, err)
	}
}

func TestQuietUntil(t *testing.T) {
	pool := &karpv1.NodePool{}
	pool.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(5 * time.Minute)
	initialized := claimWith("a", karpv1.ConditionInitialized)
	for i := range initialized.Status.Conditions {
		initialized.Status.Conditions[i].LastTransitionTime = born
	}
	busy := initialized.DeepCopy()
	busy.Status.LastPodEventTime = metav1.NewTime(born.Add(time.Hour))
	static, never := pool.DeepCopy(), pool.DeepCopy()
	static.Spec.Replicas = new(int64(3))
	never.Spec.Disruption.ConsolidateAfter = karpv1.NeverDuration()
	for _, test := range []struct {
		name  string
		claim *karpv1.NodeClaim
		pool  *karpv1.NodePool
		want  time.Duration // after born; -1 for never
	}{
		{"since it was initialised", initialized, pool, 5 * time.Minute},
		{"since the last pod event", busy, pool, 65 * time.Minute},
		{"not initialised", claimWith("b", karpv1.ConditionLaunched), pool, -1},
		{"static", busy, static, -1},
		{"never", busy, never, -1},
	} {
		until, counts := quietUntil(test.claim, test.pool)
		if counts != (test.want >= 0) || counts && until.Sub(born.Time) != test.want {
			t.Errorf("%s: %s, %t, want %s after %s", test.name, until, counts, test.want, born)
		}
	}
}

func TestExpiry(t *testing.T) {
	claim := claimWith("a")
	if at, expires := expiry(claim); expires {
		t.Errorf("without expireAfter: %s", at)
	}
	claim.Spec.ExpireAfter = karpv1.DurationOf(720 * time.Hour)
	if at, expires := expiry(claim); !expires || at.Sub(born.Time) != 720*time.Hour {
		t.Errorf("%s, %t, want 720h after %s", at, expires, born)
	}
}

func TestSoonest(t *testing.T) {
	for _, test := range []struct {
		pauses []time.Duration
		want   time.Duration
	}{{nil, 0}, {[]time.Duration{0, 0}, 0}, {[]time.Duration{0, 3, 2}, 2}, {[]time.Duration{5, 0}, 5}} {
		if got := soonest(test.pauses...); got != test.want {
			t.Errorf("%v: %d, want %d", test.pauses, got, test.want)
		}
	}
}
