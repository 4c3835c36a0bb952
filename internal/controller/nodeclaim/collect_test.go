package nodeclaim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// empty is a cloud without machines, whose first responses are lost.
type empty struct {
	cloud.Provider
	lost  int
	asked []time.Duration
	since time.Time
}

func (e *empty) Machines(context.Context) ([]cloud.Machine, error) {
	e.asked = append(e.asked, time.Since(e.since))
	if len(e.asked) <= e.lost {
		return nil, errors.New("no answer")
	}
	return nil, nil
}

// TestFirstRounds verifies that after a start, leaks are searched every ten seconds until twenty rounds have
// succeeded, then every two minutes.
func TestFirstRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := karpv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		api, provider := fake.NewClientBuilder().WithScheme(scheme).Build(), &empty{lost: 3, since: time.Now()}
		limiter := &removal.Limiter{
			Client: api, Live: api, Provider: provider, Metrics: telemetry.New(prometheus.NewRegistry()), Timers: controller.Production(), Clock: clock.RealClock{},
		}
		c := &Collector{Client: api, Live: api, Provider: provider, Timers: controller.Production(), Clock: clock.RealClock{}, Limiter: limiter}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		var want []time.Duration
		for at := range 23 {
			want = append(want, time.Duration(at)*10*time.Second)
		}
		for at := want[22] + 2*time.Minute; at < 10*time.Minute; at += 2 * time.Minute {
			want = append(want, at)
		}
		if len(provider.asked) != len(want) {
			t.Fatalf("called at %v, want %v", provider.asked, want)
		}
		for i, at := range want {
			if provider.asked[i] != at {
				t.Errorf("round %d was at %v, want %v", i, provider.asked[i], at)
			}
		}
	})
}
