package execute_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestLogCreated checks that each claim that was created has a line, that it counts all pods and names a limited number,
// and that virtual pods are counted apart.
func TestLogCreated(t *testing.T) {
	claim := func(name string, pods int, virtual string) plan.NewClaim {
		c := plan.NewClaim{Name: name, Pool: "p"}
		for i := range pods {
			c.Pods = append(c.Pods, &model.Pod{Shape: &model.Shape{Namespace: "n", Virtual: virtual}, Name: fmt.Sprintf("pod-%d", i)})
		}
		return c
	}
	outcome := func(c plan.NewClaim, err error) execute.Outcome {
		return execute.Outcome{Action: plan.CreateClaim{NewClaim: c, Reason: "provisioned"}, Err: err}
	}
	var got []string
	execute.LogCreated(funcr.NewJSON(func(text string) {
		line := map[string]any{}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(line["nodeClaim"], " ", line["pods"], " ", line["virtualPods"], " ", len(line["podNames"].([]any))))
	}, funcr.Options{}), []execute.Outcome{
		outcome(claim("few", 2, ""), nil), outcome(claim("refused", 2, ""), errors.New("no")), outcome(claim("many", 200, ""), nil),
		outcome(claim("buffer", 3, model.VirtualReplica), nil), {Action: plan.DeleteClaim{Claim: "gone"}},
	}, execute.PodsOf)
	want := []string{"few 2 <nil> 2", fmt.Sprintf("many 200 <nil> %d", telemetry.MostPodNames), "buffer 0 3 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
