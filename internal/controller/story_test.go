package controller_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// lines records the lines of a log at level info, as JSON.
type lines struct {
	mu  sync.Mutex
	all []map[string]any
}

func (l *lines) add(text string) {
	line := map[string]any{}
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		line["msg"] = "not JSON: " + text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// about returns the lines with a message about claims, without the fields that controller-runtime adds to each.
func (l *lines) about() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var about []map[string]any
	for _, line := range l.all {
		if message, _ := line["msg"].(string); !strings.Contains(message, "nodeclaim") && !strings.Contains(message, "node ") {
			continue
		}
		own := maps.Clone(line)
		for _, key := range []string{"logger", "level", "controller", "controllerGroup", "controllerKind", "NodeClaim", "namespace", "name", "reconcileID"} {
			delete(own, key)
		}
		about = append(about, own)
	}
	return about
}

// testStory verifies that the lifecycle of one claim is four lines of the log at level info and as many events on the
// claim. They report what was launched, at which price and why, and the result.
func testStory(t *testing.T, s *apiServer) {
	w := in(t, s)
	written := &lines{}
	log := funcr.NewJSON(written.add, funcr.Options{})
	w.log, w.price = &log, 0.0321
	w.start()
	claim := newClaim("story")
	claim.Annotations[karpv1.AnnotationBoughtBy], claim.Annotations[karpv1.AnnotationPods] = "provisioned", "uid-a uid-b"
	w.create(claim)
	node := w.boot(claim)
	w.untilCondition(claim, karpv1.ConditionRegistered, "True", "")
	w.report(node, "True")
	w.untilCondition(claim, karpv1.ConditionInitialized, "True", "")
	providerID := claim.Status.ProviderID
	w.remove(claim)
	w.gone(claim)
	w.until("the last line is written", func() bool { return len(written.about()) >= 4 })

	instance := providerID[strings.LastIndex(providerID, "/")+1:]
	want := []map[string]any{
		{"msg": "launched nodeclaim", "nodeClaim": "story", "nodePool": "general", "instanceType": "m-4x", "zone": "zone-a",
			"capacityType": "spot", "instanceID": instance, "providerID": providerID, "pricePerHour": 0.0321, "reason": "provisioned", "pods": 2.0},
		{"msg": "registered nodeclaim", "nodeClaim": "story", "nodePool": "general", "node": "node-story", "providerID": providerID,
			"after": ""},
		{"msg": "initialized nodeclaim", "nodeClaim": "story", "nodePool": "general", "node": "node-story", "providerID": providerID,
			"after": ""},
		{"msg": "deleted nodeclaim", "nodeClaim": "story", "nodePool": "general", "node": "node-story", "instanceType": "m-4x", "zone": "zone-a",
			"capacityType": "spot", "instanceID": instance, "providerID": providerID, "pricePerHour": 0.0321, "reason": "deleted",
			"after": "", "lifetime": ""},
	}
	got := written.about()
	for _, line := range got {
		for _, key := range slices.Sorted(maps.Keys(line)) {
			if key == "after" || key == "lifetime" {
				line[key] = ""
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	var reasons []string
	for _, e := range w.said() {
		words := strings.Fields(e)
		reasons = append(reasons, words[0]+" "+words[1])
		if words[1] == "Launched" && e != "Normal Launched Launched instance "+instance+" (m-4x, zone-a, spot) for 0.0321 USD per hour, reason: provisioned, for 2 pods" {
			t.Errorf("event %q", e)
		}
	}
	if diff := cmp.Diff([]string{"Normal Launched", "Normal Registered", "Normal Initialized", "Normal Terminated"}, reasons); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
