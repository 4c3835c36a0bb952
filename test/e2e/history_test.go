package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// pastNode is a node as `kubectl karpenter history` knows it from the controller's log.
type pastNode struct {
	NodeClaim, Node, NodePool, Reason, LaunchedFor, RemovedBy string
	PricePerHour, Cost                                        float64
	Launched, Deleted                                         time.Time
	Pods                                                      struct{ Names []string }
}

// TestHistory lets a fleet grow, scales it down, changes its pool and ends it. What the log says then is compared with
// what the watches of the API have shown: the nodes, their times, pods, reasons and costs.
func TestHistory(t *testing.T) {
	s := onShared(t, "history")
	workloads := []shrunk{{"a", "700m", 8, 2}, {"b", "1500m", 4, 1}}
	for _, w := range workloads {
		s.create(w.deployment(s.name, w.first))
	}
	s.runs(workloads, func(w shrunk) int { return w.first })
	for _, w := range workloads {
		s.scale(w.name, w.last)
	}
	large := s.price()
	await(t, 2*patience, "consolidation to make the fleet cheaper", func(ctx context.Context) error {
		if now := s.price(); now > large/2 {
			return fmt.Errorf("it costs %.3f USD per hour, %.3f before", now, large)
		}
		return s.settled(ctx)
	})
	s.drift()
	s.runs(workloads, func(w shrunk) int { return w.last })
	for _, w := range workloads {
		s.scale(w.name, 0)
	}
	await(t, 2*patience, "the fleet to end", func(context.Context) error {
		if c := s.ledger.count(s.name); c.claims > 0 {
			return fmt.Errorf("%d claims", c.claims)
		}
		return nil
	})
	await(t, patience, "the log to have the end of all nodes", func(context.Context) error {
		for _, n := range s.past() {
			if n.Deleted.IsZero() {
				return fmt.Errorf("node %s has not ended", n.NodeClaim)
			}
		}
		return nil
	})
	s.compare(s.past())
}

// runs waits until the workloads run with the number of pods.
func (s *stage) runs(workloads []shrunk, number func(shrunk) int) {
	s.t.Helper()
	for _, w := range workloads {
		await(s.t, 2*patience, "the pods of "+w.name+" to run", s.running(w.name, number(w)))
	}
}

// drift changes the labels of the pool's nodes, and waits until all nodes have them.
func (s *stage) drift() {
	s.t.Helper()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}`))
	if err := s.Patch(s.t.Context(), pool, patch); err != nil {
		s.t.Fatal(err)
	}
	await(s.t, 3*patience, "all nodes to be replaced", func(ctx context.Context) error {
		for _, n := range s.ledger.nodesOf(s.name) {
			if n.Labels["version"] != "2" {
				return fmt.Errorf("node %s has the old labels", n.Name)
			}
		}
		return s.settled(ctx)
	})
}

// past returns the nodes of the case that the log has.
func (s *stage) past() []pastNode {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), plugin, "history", "-f", s.controller.log, "--filter", s.name, "-o", "json")
	output, err := command.Output()
	if err != nil {
		s.t.Fatalf("history: %v", err)
	}
	var answer struct{ Nodes []pastNode }
	if err := json.Unmarshal(output, &answer); err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(answer.Nodes, func(n pastNode) bool { return n.NodePool != s.name })
}

// compare compares the nodes of the log with the claims that the watches have shown.
func (s *stage) compare(past []pastNode) {
	s.t.Helper()
	logged := map[string]pastNode{}
	for _, n := range past {
		logged[n.NodeClaim] = n
	}
	reasons, total, fromLog := map[string]int{}, 0.0, 0.0
	shown := s.ledger.claimsOf(s.name)
	for _, e := range shown {
		claim, n := e.object, logged[e.object.Name]
		if n.NodeClaim == "" {
			s.t.Errorf("the log does not have claim %s", claim.Name)
			continue
		}
		price := s.priceOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: claim.Labels}})
		paid := e.left.Sub(claim.DeepCopy().Condition(karpv1.ConditionLaunched).LastTransitionTime.Time)
		total, fromLog = total+price*paid.Hours(), fromLog+n.Cost
		if off := n.Deleted.Sub(n.Launched) - paid; n.PricePerHour != price || off.Abs() > near {
			s.t.Errorf("claim %s: %v USD per hour for %v; the log has %v for %v", claim.Name, price, paid, n.PricePerHour, n.Deleted.Sub(n.Launched))
		}
		if math.Abs(n.Cost-price*n.Deleted.Sub(n.Launched).Hours()) > 1e-6 {
			s.t.Errorf("claim %s cost %v, want price per hour times time", claim.Name, n.Cost)
		}
		want := []string{claim.Annotations[karpv1.AnnotationBoughtBy], strings.ToLower(reasonOf(claim)), claim.Status.NodeName}
		if diff := cmp.Diff(want, []string{n.LaunchedFor, n.Reason, n.Node}); diff != "" {
			s.t.Errorf("claim %s: why it was launched, why it left, its node (-API +log):\n%s", claim.Name, diff)
		}
		reasons[n.LaunchedFor]++
		reasons["left "+n.Reason]++
		if diff := cmp.Diff(s.namesOf(claim), slices.Sorted(slices.Values(n.Pods.Names))); diff != "" {
			s.t.Errorf("claim %s: its pods (-API +log):\n%s", claim.Name, diff)
		}
	}
	if len(logged) != len(shown) || len(past) != len(shown) {
		s.t.Errorf("the log has %d lives of %d claims, the API had %d", len(past), len(logged), len(shown))
	}
	for _, reason := range []string{"provisioned", "drifted", "left drifted", "left empty"} {
		if reasons[reason] == 0 {
			s.t.Errorf("no node was launched for, or left for %q: %v", reason, reasons)
		}
	}
	s.t.Logf("%d nodes: %v; %.6f USD by the API, %.6f by the log", len(shown), reasons, total, fromLog)
}

// near is how far times of the log and of watches may be apart: conditions have whole seconds, and watches lag.
const near = 3 * time.Second

// namesOf returns the names of the pods for which a claim was created, by their UIDs in its annotation.
func (s *stage) namesOf(claim *karpv1.NodeClaim) []string {
	var names []string
	for _, word := range strings.Fields(claim.Annotations[karpv1.AnnotationPods]) {
		uid, _, _ := strings.Cut(word, "/")
		names = append(names, s.ledger.podName(types.UID(uid)))
	}
	slices.Sort(names)
	return names
}
