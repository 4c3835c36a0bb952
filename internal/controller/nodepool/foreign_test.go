package nodepool

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// A pool of another provider is asked about, and told to be nobody's if that is not answered.
func TestForeign(t *testing.T) {
	const patience = time.Minute
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ready := func(pool *karpv1.NodePool) string {
		c := pool.StatusConditions().Get(karpv1.ConditionNodeClassReady)
		return string(c.Status) + " " + c.Reason
	}
	asked := func(pool *karpv1.NodePool) bool {
		return pool.StatusConditions().Get(karpv1.ConditionServed) != nil
	}
	takeBack := func(pool *karpv1.NodePool) { // as its owner does
		answered(pool)
		pool.StatusConditions().Set(yes(karpv1.ConditionNodeClassReady))
	}
	type step struct {
		at     time.Duration
		before func(*karpv1.NodePool)
		after  time.Duration // until the next look
		asked  bool
		ready  string
	}
	const fine, nobody = "True NodeClassReady", "False OtherProvider"
	for name, steps := range map[string][]step{
		"nobody answers": {
			{0, nil, patience, true, fine}, {20 * time.Second, nil, 40 * time.Second, true, fine}, {patience, nil, 0, false, nobody}, {2 * patience, nil, 0, false, nobody},
		},
		"its owner comes": { // or is of another program, and answers by what it writes
			{0, nil, patience, true, fine}, {patience, nil, 0, false, nobody}, {2 * patience, takeBack, afterTakeBack * patience, false, fine},
			{100 * patience, nil, (afterTakeBack - 98) * patience, false, fine}, {(2 + afterTakeBack) * patience, nil, patience, true, fine},
		},
		"its owner answers": {
			{0, nil, patience, true, fine}, {time.Second, takeBack, afterAnswer*patience - time.Second, false, fine},
			{patience, nil, (afterAnswer - 1) * patience, false, fine}, {afterAnswer * patience, nil, patience, true, fine},
		},
		"asked by a process before us": {
			{0, func(pool *karpv1.NodePool) { (&questions{}).weigh(pool, "aws", start, patience) }, patience, true, fine}, {patience, nil, 0, false, nobody},
		},
	} {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
		pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
		pool.StatusConditions().Set(yes(karpv1.ConditionValidationSucceeded))
		pool.StatusConditions().Set(yes(karpv1.ConditionNodeClassReady))
		var q questions
		for i, s := range steps {
			if s.before != nil {
				s.before(pool)
			}
			after := q.weigh(pool, "aws", start.Add(s.at), patience)
			if after != s.after || asked(pool) != s.asked || ready(pool) != s.ready {
				t.Errorf("%s, step %d: again after %s, asked %t, %s; want %s, %t, %s", name, i, after, asked(pool), ready(pool), s.after, s.asked, s.ready)
			}
			if pool.StatusConditions().Root().IsTrue() != (s.ready == fine) {
				t.Errorf("%s, step %d: the pool's own condition is %v", name, i, pool.StatusConditions().Root())
			}
		}
		if c := pool.StatusConditions().Get(karpv1.ConditionNodeClassReady); name == "asked by a process before us" && !strings.Contains(c.Message, "KWOKNodeClass.karpenter.kwok.sh are not of the cloud provider of the controller that runs (aws)") {
			t.Errorf("it is told by %q", c.Message)
		}
	}
}
