package aws

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
)

// backoffWorld is a provider with --interruption-backoff and a pool, in which spot is cheapest in us-east-1a.
type backoffWorld struct {
	*world
	*Provider
	pool *karpv1.NodePool
}

func newBackoffWorld(t *testing.T, longest time.Duration, requirements ...karpv1.Requirement) *backoffWorld {
	t.Helper()
	w := newWorld(t, "m5.large", "m5a.large")
	w.spot = nil
	for i, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
		price := 0.030 + 0.005*float64(i)
		w.spot = append(w.spot, instance.SpotPrice{Type: "m5.large", Zone: zone, Price: price},
			instance.SpotPrice{Type: "m5a.large", Zone: zone, Price: price + 0.001})
	}
	pool := poolOf("default")
	pool.Spec.Template.Spec.Requirements = requirements
	check(t, w.api.Create(t.Context(), pool))
	return &backoffWorld{world: w, Provider: w.provider(t, func(o *Options) { o.InterruptionBackoff = longest }), pool: pool}
}

// interrupt passes the notice for a machine of the claim.
func (b *backoffWorld) interrupt(t *testing.T, claim *karpv1.NodeClaim) {
	t.Helper()
	id, _ := instanceOf(claim.Status.ProviderID)
	notice := interruption.Notice{Kind: interruption.SpotInterrupted, Instances: []string{id}}
	if d := interruption.Decide(notice, id, noticed(claim), interruption.Rules{Now: b.clock.Now()}); d.SoldOut != nil {
		b.markUnavailable(t.Context(), *d.SoldOut)
	}
}

// history runs short jobs for six hours, each on a machine of its own for half an hour, while EC2 interrupts all spot
// instances in us-east-1a every ten minutes. It returns the number of interruptions and the price of the machines in USD.
func (b *backoffWorld) history(t *testing.T, disturbed bool) (interruptions int, price float64) {
	t.Helper()
	type job struct {
		claim *karpv1.NodeClaim
		ends  int
	}
	var jobs []job
	launched := 0
	launch := func() *karpv1.NodeClaim {
		launched++
		return b.launched(t, b.Provider, fmt.Sprintf("job-%d", launched), karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In",
			Values: []string{"spot", "on-demand"}})
	}
	for tick := range 36 {
		running := jobs[:0]
		for _, j := range jobs {
			labels := j.claim.Labels
			for _, p := range b.spot {
				if p.Type == labels[corev1.LabelInstanceTypeStable] && p.Zone == labels[corev1.LabelTopologyZone] {
					price += p.Price / 6
				}
			}
			if j.ends <= tick {
				continue
			}
			if disturbed && labels[corev1.LabelTopologyZone] == "us-east-1a" && labels[karpv1.LabelCapacityType] == "spot" {
				interruptions++
				b.interrupt(t, j.claim)
				j.claim = launch()
			}
			running = append(running, j)
		}
		jobs = append(running, job{launch(), tick + 3})
		b.clock.skip(10 * time.Minute)
	}
	return interruptions, price
}

// With the backoff, a zone whose spot instances are interrupted every ten minutes causes less than half of the
// interruptions, and the machines cost no more than the next zone does.
func TestInterruptionBackoff(t *testing.T) {
	before, cost := newBackoffWorld(t, 0).history(t, true)
	after, costAfter := newBackoffWorld(t, time.Hour).history(t, true)
	t.Logf("without: %d interruptions, %.3f USD; with: %d interruptions, %.3f USD", before, cost, after, costAfter)
	if before < 18 || after*2 >= before {
		t.Errorf("%d interruptions, and %d without the backoff, want less than half of them", after, before)
	}
	if most := cost * 0.035 / 0.030; costAfter > most {
		t.Errorf("the machines cost %.3f USD, want %.3f or less: what they cost in the next zone", costAfter, most)
	}
}

// Without interruptions, the backoff changes nothing.
func TestInterruptionBackoffIsNeutral(t *testing.T) {
	var catalogs [2][]cloud.InstanceType
	for i, longest := range []time.Duration{0, time.Hour} {
		b := newBackoffWorld(t, longest)
		if n, _ := b.history(t, false); n != 0 {
			t.Fatalf("%d interruptions", n)
		}
		b.unavailable.Mark(instance.Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a"})
		var err error
		catalogs[i], err = b.Catalog(t.Context(), b.pool)
		check(t, err)
		for k := range catalogs[i] { // the times of the refusal differ between the worlds
			for o := range catalogs[i][k].Offerings {
				offering := &catalogs[i][k].Offerings[o]
				offering.RefusedAt, offering.RetryAt = time.Time{}, time.Time{}
			}
		}
	}
	if diff := cmp.Diff(catalogs[0], catalogs[1], cmp.AllowUnexported(cloud.InstanceType{})); diff != "" {
		t.Errorf("catalogs differ:\n%s", diff)
	}
}

// A pool always has an offering in the zone that is avoided for three minutes at most. The offering says for how long it
// is avoided, and why.
func TestInterruptionBackoffIsLimited(t *testing.T) {
	in := func(key string, values ...string) karpv1.Requirement {
		return karpv1.Requirement{Key: key, Operator: "In", Values: values}
	}
	spot, onDemand := in(karpv1.LabelCapacityType, "spot"), in(karpv1.LabelCapacityType, "on-demand")
	m5 := in(corev1.LabelInstanceTypeStable, "m5.large")
	for name, test := range map[string]struct {
		pool    []karpv1.Requirement
		other   bool // the other type has been refused
		minutes int
	}{
		"all":                        {nil, false, 48},
		"spot, two types":            {[]karpv1.Requirement{spot}, false, 48},
		"spot, one type":             {[]karpv1.Requirement{spot, m5}, false, 3},
		"one type, on demand too":    {[]karpv1.Requirement{m5}, false, 48},
		"spot, the other is refused": {[]karpv1.Requirement{spot}, true, 3},
		"on demand only":             {[]karpv1.Requirement{onDemand}, false, 48},
		"another zone":               {[]karpv1.Requirement{spot, m5, in(corev1.LabelTopologyZone, "us-east-1b")}, false, 48},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackoffWorld(t, time.Hour, test.pool...)
			claim := b.launched(t, b.Provider, "one", karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"spot"}},
				karpv1.Requirement{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: m5.Values})
			for range 3 {
				b.clock.skip(10 * time.Minute)
				if test.other {
					b.unavailable.Mark(instance.Offer{CapacityType: "spot", Type: "m5a.large", Zone: "us-east-1a"})
				}
				b.interrupt(t, claim)
			}
			offer := instance.Offer{CapacityType: "spot", Type: "m5.large", Zone: "us-east-1a"}
			until := b.unavailable.Until(offer)
			if got := until.Sub(b.clock.Now()).Round(time.Minute); got != time.Duration(test.minutes)*time.Minute {
				t.Errorf("avoided for %v, want %d minutes", got, test.minutes)
			}
			types, err := b.Catalog(t.Context(), b.pool)
			check(t, err)
			want := map[bool]int{true: 3}[test.minutes > 3]
			for _, o := range types[0].Offerings {
				if types[0].Name == "m5.large" && o.Zone == "us-east-1a" && o.CapacityType == "spot" &&
					(o.Available || !o.RetryAt.Equal(until) || o.Interruptions != want) {
					t.Errorf("the offering is %+v, want %d interruptions", o, want)
				}
			}
		})
	}
}
