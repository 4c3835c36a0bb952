package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func TestDisrupted(t *testing.T) {
	for name, c := range map[string]struct {
		grace        *metav1.Duration
		policy       karpv1.ConsolidationPolicy
		mode, called string
	}{
		"a renewal":        {nil, "", "graceful", ""},
		"no time to leave": {&metav1.Duration{}, karpv1.ConsolidateWhenEmpty, "forceful", "when_empty"},
		"some time to leave": {&metav1.Duration{Duration: time.Minute}, karpv1.ConsolidateWhenEmptyOrUnderutilized,
			"eventual", "when_empty_or_underutilized"},
		"a policy with one word": {nil, karpv1.ConsolidateBalanced, "graceful", "balanced"},
	} {
		m := New(prometheus.NewRegistry())
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{karpv1.LabelNodePool: "p",
			karpv1.LabelCapacityType: "spot"}}}
		claim.Spec.TerminationGracePeriod = c.grace
		m.Disrupted(claim, DisruptedDrifted, c.policy)
		if n := testutil.ToFloat64(m.NodeClaimsDisrupted.WithLabelValues("drifted", "p", "spot", c.called, c.mode)); n != 1 {
			t.Errorf("%s: counted %v under %q, %q, want 1", name, n, c.called, c.mode)
		}
	}
}
