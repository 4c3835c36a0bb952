package disrupt_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

func TestBackingOff(t *testing.T) {
	noted := convert.WithBackoff("", "Drifted", &model.Backoff{Reason: "Drifted", Failures: 3, At: loopcluster.Noon, Why: "claim a is gone: no capacity"})
	noted = convert.WithBackoff(noted, "Expired", &model.Backoff{Reason: "Expired", Failures: 1, At: loopcluster.Noon.Add(30 * time.Minute)})
	for _, c := range []struct {
		annotation string
		after      time.Duration
		says       []string
	}{
		{"", 0, nil},
		{"broken", 0, nil},
		{noted, 31 * time.Minute, []string{"Drifted: replacements failed 3 times in a row; after 2026-", "(the last: claim a is gone: no capacity)", "Expired: replacements failed once; after"}},
		{noted, 70 * time.Minute, []string{"Expired: replacements failed once; after"}}, // the other failure was more than an hour ago
		{noted, 2 * time.Hour, nil},
	} {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{karpv1.AnnotationBackoff: c.annotation}}}
		got := disrupt.BackingOff(pool, loopcluster.Noon.Add(c.after))
		if n := strings.Count(got, "replacements failed"); n != len(c.says)-strings.Count(strings.Join(c.says, ""), "the last") {
			t.Errorf("after %v: %q, want %d reasons", c.after, got, len(c.says))
		}
		for _, part := range c.says {
			if !strings.Contains(got, part) {
				t.Errorf("after %v: %q does not contain %q", c.after, got, part)
			}
		}
	}
}
