package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
)

func hashed(hash, version string) map[string]string {
	return map[string]string{karpv1.AnnotationNodePoolHash: hash, karpv1.AnnotationNodePoolHashVersion: version}
}

// ofKind returns a reference to a class.
func ofKind(kind, name string) karpv1.NodeClassReference {
	return karpv1.NodeClassReference{Group: "example.com", Kind: kind, Name: name}
}

// poolNaming returns a pool that references a class.
func poolNaming(class karpv1.NodeClassReference) *karpv1.NodePool {
	pool := &karpv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = class
	return pool
}

// TestStaticDrift verifies that a hash that cannot be compared has no effect: the previous result holds until the
// hash is updated. The hash on the pool is not used.
func TestStaticDrift(t *testing.T) {
	same := poolNaming(ofKind("Class", "first")).Hash()
	for _, test := range []struct {
		name        string
		claim, pool map[string]string
		known       string // reason of Drifted
		class       karpv1.NodeClassReference
		want        bool
		doubt       string
	}{
		{name: "same hash", claim: hashed(same, karpv1.HashVersion), pool: hashed(same, karpv1.HashVersion)},
		{name: "other hash", claim: hashed("1", karpv1.HashVersion), pool: hashed(same, karpv1.HashVersion), want: true},
		{name: "other hash, and the pool is not stamped", claim: hashed("1", karpv1.HashVersion), want: true},
		{name: "other hash, and the pool's is of another version", claim: hashed("1", karpv1.HashVersion), pool: hashed("1", "v3"), want: true},
		{name: "same hash, and the pool's is of another version", claim: hashed(same, karpv1.HashVersion), pool: hashed("1", "v3")},
		{name: "the claim's is of another version", claim: hashed("1", "v3"), pool: hashed(same, karpv1.HashVersion), doubt: "v3"},
		{name: "both are of another version", claim: hashed("1", "v3"), pool: hashed("1", "v3"), doubt: "v3"},
		{name: "of another version, and known to have drifted", claim: hashed("1", "v3"), known: karpv1.ReasonNodePoolDrifted, want: true},
		{name: "of another version, and drifted for another reason", claim: hashed("1", "v3"), known: "ImageDrift", doubt: "v3"},
		{name: "the claim has none", pool: hashed(same, karpv1.HashVersion), doubt: "is not updated yet"},
		{name: "the claim has a version only", claim: hashed("", karpv1.HashVersion), doubt: "is not updated yet"},
		{name: "a class of another name", claim: hashed(same, karpv1.HashVersion), class: ofKind("Class", "second")},
		{name: "a class of another kind", claim: hashed("1", "v3"), class: ofKind("Other", "first"), want: true},
		{name: "a class of no kind", claim: hashed(same, karpv1.HashVersion), class: ofKind("", "first"), doubt: "does not name the kind"},
	} {
		if test.class == (karpv1.NodeClassReference{}) {
			test.class = ofKind("Class", "first")
		}
		claim, pool := &karpv1.NodeClaim{}, poolNaming(test.class)
		claim.Spec.NodeClassRef = ofKind("Class", "first")
		claim.Annotations, pool.Annotations = test.claim, test.pool
		if test.known != "" {
			claim.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, test.known, test.known)
		}
		got, err := cloud.StaticDrift(claim, pool)
		switch {
		case got != test.want:
			t.Errorf("%s: got is %v, want %v", test.name, got, test.want)
		case (err != nil) != (test.doubt != ""):
			t.Errorf("%s: (err != nil) is %v, want %v, %v, and an error about %q", test.name, (err != nil), (test.doubt != ""), err, test.doubt)
		case err != nil && !strings.Contains(err.Error(), test.doubt):
			t.Errorf("%s: err != nil && !strings.Contains(err.Error(), test.doubt), %v, and an error about %q", test.name, err, test.doubt)
		}
	}
}

// TestDriftOutlivesAnUpgrade covers hashes of an older version after an upgrade. They are updated by other
// controllers, in no fixed order. Drift that was detected before is kept meanwhile, for the hash of the pool and for
// that of the provider.
func TestDriftOutlivesAnUpgrade(t *testing.T) {
	for _, test := range []struct {
		name     string
		reason   string
		version  string // of the claim's hash of the pool
		detector cloud.DriftDetector
		want     string
		doubt    string
	}{
		{"the pool's", karpv1.ReasonNodePoolDrifted, "v3", unconcerned{}, karpv1.ReasonNodePoolDrifted, ""},
		{"the pool's, undrifted", "", "v3", unconcerned{}, "", causeHash},
		{"the provider's", "ClassDrift", karpv1.HashVersion, unstamped{}, "ClassDrift", causeHash},
		{"both", "ClassDrift", "v3", unstamped{}, "ClassDrift", causeHash},
		{"neither, and all is well", "ClassDrift", karpv1.HashVersion, unconcerned{}, "", ""},
	} {
		pool, claim := poolNaming(ofKind("Class", "first")), claimWith("a", karpv1.ConditionLaunched)
		claim.Spec.NodeClassRef, claim.Annotations = ofKind("Class", "first"), hashed(pool.Hash(), test.version)
		if test.reason != "" {
			claim.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, test.reason, test.reason)
		}
		a := &DriftReconciler{Clock: clocktesting.NewFakePassiveClock(born.Time),
			Timers: controller.Timers{TypeDrift: time.Hour, CatalogRead: time.Minute}, detector: test.detector}
		cause := ""
		if d := a.markDrift(t.Context(), claim, pool); d != nil {
			cause = d.cause
		}
		drifted := claim.Condition(karpv1.ConditionDrifted)
		switch {
		case drifted.IsTrue() != (test.want != ""):
			t.Errorf("%s: drifted.IsTrue() is %v, want %v, want %q", test.name, drifted.IsTrue(), (test.want != ""), test.want)
		case drifted.IsTrue() && drifted.Reason != test.want:
			t.Errorf("%s: drifted.IsTrue() && drifted.Reason != test.want, drifted %v, want %q", test.name, drifted, test.want)
		case cause != test.doubt:
			t.Errorf("%s: cause is %v, want %v", test.name, cause, test.doubt)
		}
	}
}

// unstamped is a provider with hashes of another version.
type unstamped struct{}

func (unstamped) Drifted(context.Context, *karpv1.NodeClaim, *karpv1.NodePool) (string, error) {
	return "", fmt.Errorf("comparing: %w", cloud.ErrUnstamped)
}

// TestClassOfAnotherKind verifies that claims of a pool whose class is of another provider's kind have drifted, and
// that no provider is queried, because each would return something else.
func TestClassOfAnotherKind(t *testing.T) {
	claim := claimWith("a", karpv1.ConditionLaunched)
	claim.Spec.NodeClassRef = ofKind("Class", "first")
	for _, annotations := range []map[string]string{nil, hashed("1", "v3"),
		hashed(poolNaming(ofKind("Class", "first")).Hash(), karpv1.HashVersion)} {
		claim.Annotations = annotations
		for _, detector := range []cloud.DriftDetector{nil, unconcerned{}, unstamped{}} {
			a := &DriftReconciler{Clock: clocktesting.NewFakePassiveClock(born.Time), detector: detector}
			if reason, unsure := a.drift(t.Context(), claim,
				poolNaming(ofKind("Other", "first"))); reason != karpv1.ReasonNodePoolDrifted || unsure != nil {
				t.Errorf("annotations %v, detector %v: %q, %v", annotations, detector, reason, unsure)
			}
		}
	}
}

// TestAnotherClass verifies that another class counts as drift if no provider can say how the class changes the
// machine.
func TestAnotherClass(t *testing.T) {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: born}}
	claim.Spec.NodeClassRef = ofKind("Class", "first")
	for name, want := range map[string]string{"first": "", "second": karpv1.ReasonNodePoolDrifted} {
		pool := poolNaming(ofKind("Class", name))
		claim.Annotations = hashed(pool.Hash(), karpv1.HashVersion)
		for detector, want := range map[cloud.DriftDetector]string{nil: want, unconcerned{}: ""} {
			a := &DriftReconciler{Clock: clocktesting.NewFakePassiveClock(born.Time),
				Timers: controller.Timers{TypeDrift: time.Hour, CatalogRead: time.Minute}, detector: detector}
			if reason, unsure := a.drift(t.Context(), claim, pool); reason != want || unsure != nil {
				t.Errorf("class %s, detector %v: %q, %v, want %q", name, detector, reason, unsure, want)
			}
		}
	}
}

// unconcerned is a provider for which no class is a reason to drift.
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
		if got := cloud.RequirementsDrift(claim, pool, rules); got != test.want {
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
		{Name: "booked", Offerings: []cloud.Offering{offered("a", "reserved", in(reservation, "r-1"), in("kind", "block")),
			offered("b", "on-demand")}},
		{Name: "nowhere"},
	}
	for _, test := range []struct {
		name   string
		labels map[string]string
		want   bool
	}{
		{"unavailable is not gone", map[string]string{"type": "small", "zone": "a", "capacity": "spot"}, false},
		{"another zone", map[string]string{"type": "small", "zone": "b", "capacity": "spot"}, true},
		{"no such type", map[string]string{"type": "large", "zone": "a", "capacity": "spot"}, true},
		{"no offering", map[string]string{"type": "nowhere", "zone": "a", "capacity": "spot"}, true},
		{"type not known", map[string]string{"zone": "a", "capacity": "spot"}, false},
		{"zone not known", map[string]string{"type": "small", "capacity": "spot"}, false},
		{"the offering's own label", map[string]string{"type": "rack", "zone": "a", "capacity": "spot", "rack": "7"}, false},
		{"the offering's own label is another", map[string]string{"type": "rack", "zone": "a", "capacity": "spot", "rack": "8"}, true},
		{"another reservation by now", map[string]string{"type": "booked", "zone": "a", "capacity": "reserved",
			reservation: "r-0", "kind": "default"}, false},
		{"the reservation has ended and on-demand is there",
			map[string]string{"type": "booked", "zone": "b", "capacity": "reserved", reservation: "r-0"}, false},
		{"the reservation has ended and nothing is there",
			map[string]string{"type": "booked", "zone": "c", "capacity": "reserved", reservation: "r-0"}, true},
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
		got, err := typeDrift(claim, catalog{types: types, reservation: reservation})
		if err != nil || got != test.want {
			t.Errorf("%s: %t, %v, want %t", test.name, got, err, test.want)
		}
	}
}

// TestTypeDriftWithoutCatalog verifies that a provider that returns an empty catalog does not cause the replacement
// of all nodes.
func TestTypeDriftWithoutCatalog(t *testing.T) {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelInstanceTypeStable: "small"}}}
	if got, err := typeDrift(claim, catalog{}); got || !errors.Is(err, errNoTypes) {
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
	never.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{}
	for _, test := range []struct {
		name  string
		claim *karpv1.NodeClaim
		pool  *karpv1.NodePool
		want  time.Duration // after born; -1 for never
	}{
		{"since it was initialized", initialized, pool, 5 * time.Minute},
		{"since the last pod event", busy, pool, 65 * time.Minute},
		{"not initialized", claimWith("b", karpv1.ConditionLaunched), pool, -1},
		{"static", busy, static, -1},
		{"never", busy, never, -1},
	} {
		until, counts := consolidatableFrom(test.claim, test.pool)
		switch {
		case counts != (test.want >= 0):
			t.Errorf("%s: counts is %v, want %v, want %s", test.name, counts, (test.want >= 0), test.want)
		case counts && until.Sub(born.Time) != test.want:
			t.Errorf("%s: counts && until.Sub(born.Time) != test.want, %s, %t, want %s, after %s", test.name, until, counts, test.want, born)
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
		if got := shortest(test.pauses...); got != test.want {
			t.Errorf("%v: %d, want %d", test.pauses, got, test.want)
		}
	}
}
