package aws

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// A thousand claims at once, at the rates that EC2 publishes for a new account (CreateFleet and CreateLaunchTemplate: a
// burst of 50, then 5 per second). Identical claims need one call. With 200 kinds of claims, 200 fleets are needed, and
// the minimum is (200 - 50) / 5 = 30 s. 200 launch templates take as long, and their tokens refill at the same time.
func TestThousandClaims(t *testing.T) {
	for _, test := range []struct {
		name   string
		kinds  int
		fleets int
		within time.Duration
	}{
		{"alike", 1, 1, 3 * time.Second},
		{"of 40 kinds", 40, 40, 3 * time.Second},
		{"of 200 kinds", 200, 200, 36 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { launchThousand(t, test.kinds, test.fleets, test.within) })
		})
	}
}

func launchThousand(t *testing.T, kinds, fleets int, within time.Duration) {
	w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}}, "m5.large", "m6i.large", "c5.large", "c6i.large")
	for i := range w.types {
		w.types[i].Usage = []string{catalog.UsageOnDemand}
	}
	p := w.provider(t, func(o *Options) { o.Rates = map[string]launch.Rate{} })
	for _, name := range []string{"m5.large", "m6i.large", "c5.large", "c6i.large"} {
		check(t, w.sim.Drain(name, "", karpv1.CapacityTypeOnDemand, 1000))
	}
	w.sim.ResetCalls()
	began, done := time.Now(), make(chan error)
	for i := range 1000 {
		c := w.claim(t, fmt.Sprintf("claim-%04d", i),
			karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: karpv1.OperatorIn, Values: []string{karpv1.CapacityTypeOnDemand}},
			karpv1.Requirement{Key: corev1.LabelTopologyZone, Operator: karpv1.OperatorIn, Values: []string{"us-east-1a", "us-east-1b"}})
		c.Labels["example.com/kind"] = fmt.Sprint(i % kinds)
		go func() { _, err := p.Launch(t.Context(), c); done <- err }()
	}
	for range 1000 {
		var insufficient *cloud.InsufficientCapacityError
		if err := <-done; err != nil && !errors.As(err, &insufficient) {
			t.Error(err)
		} else if err != nil {
			t.Errorf("no capacity: %v", err)
		}
	}
	elapsed := time.Since(began)
	throttled := 0
	calls := map[string]int{}
	for c, n := range w.sim.Calls() {
		calls[c.Action] += n
		if c.Code == "RequestLimitExceeded" {
			throttled += n
		}
	}
	t.Logf("%d kinds: %s, calls %v, %d throttled", kinds, elapsed, calls, throttled)
	switch {
	case calls["CreateFleet"] != fleets:
		t.Errorf(`calls["CreateFleet"] is %v, want %v`, calls["CreateFleet"], fleets)
	case calls["CreateLaunchTemplate"] != fleets:
		t.Errorf(`calls["CreateLaunchTemplate"] is %v, want %v`, calls["CreateLaunchTemplate"], fleets)
	case throttled > 0:
		t.Errorf("throttled is %v, want at most 0", throttled)
	}
	if elapsed > within {
		t.Errorf("it took %s, want at most %s", elapsed, within)
	}
	if n := len(w.sim.Instances()); n != 1000 {
		t.Errorf("%d instances were launched", n)
	}
	quiet := time.NewTimer(10 * time.Minute) // lets pending work finish
	<-quiet.C
}
