package model_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// choosy returns a pod with terms that no other pod has, of two values each.
func choosy(namespace, name string, terms int) model.PodSpec {
	p := model.PodSpec{UID: namespace + "-" + name, Name: name, Namespace: namespace, Created: epoch}
	for i := range terms {
		value := fmt.Sprintf("%s-%s-%d", namespace, name, i)
		p.Alternatives = append(p.Alternatives, []label.Requirement{{Key: "one", Operator: label.NotIn, Values: []string{value}}, {Key: "two", Operator: label.NotIn, Values: []string{value}}})
	}
	return p
}

// bounded returns a pod with constraints between pods that no other pod has, over the given number of topology keys.
func bounded(namespace, name string, constraints, keys int) model.PodSpec {
	p := model.PodSpec{UID: namespace + "-" + name, Name: name, Namespace: namespace, Created: epoch}
	for i := range constraints {
		value := fmt.Sprintf("%s-%s-%d", namespace, name, i)
		selector := model.Selector{Namespaces: []string{namespace}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{value}}}}
		key := fmt.Sprintf("%s-%d", name, i%max(1, keys))
		if keys == 0 {
			key = []string{model.LabelZone, model.LabelHostname}[i/3%2]
		}
		switch i % 3 {
		case 0:
			p.Spread = append(p.Spread, model.Spread{Key: key, MaxSkew: 1, Soft: true, Selector: selector})
		case 1:
			p.Terms = append(p.Terms, model.Term{Key: key, Anti: true, Selector: selector})
		case 2:
			p.Terms = append(p.Terms, model.Term{Key: key, Weight: 1, Selector: selector})
		}
	}
	return p
}

// crowd returns pods of several namespaces: the pods of one have far too many terms, one pod of another does, one
// namespace is ordinary, and the pods of two have too many constraints between pods or topology keys.
func crowd() []model.PodSpec {
	var pods []model.PodSpec
	for i := range 100 {
		pods = append(pods, choosy("many", fmt.Sprintf("p-%02d", i), 100), choosy("plain", fmt.Sprintf("p-%02d", i), 1+i%2))
	}
	for i := range 29 {
		pods = append(pods, bounded("near", fmt.Sprintf("p-%02d", i), 116, 0), bounded("keys", fmt.Sprintf("p-%02d", i), 15, 12))
	}
	for i := range 10 {
		pods = append(pods, bounded("near", fmt.Sprintf("few-%02d", i), 16, 0))
	}
	pods = append(pods, bounded("near", "one", 1000, 0), bounded("keys", "one", 1000, 1000))
	return append(pods, choosy("large", "one", 6000), choosy("large", "two", 10))
}

func summary(s *model.Snapshot) map[string]string {
	result := map[string]string{}
	for _, g := range s.Groups {
		for _, p := range g.Pods {
			result[p.Key()] = fmt.Sprintf("%d marks, %d rows", len(g.SpreadMarks)+len(g.TermMarks), len(g.Rows))
		}
	}
	for _, p := range s.Rejected {
		result[p.Key()] = p.Rejected.Reason
	}
	return result
}

// TestAdmission checks that the most expensive pods are rejected, independently of the order, and that cheaper pods are
// not.
func TestAdmission(t *testing.T) {
	pods := crowd()
	b := model.NewBuilder()
	for _, p := range pods {
		b.UpsertPod(p)
	}
	first := b.Snapshot(epoch)
	want := summary(first)
	admitted := map[string]int{}
	for key, what := range want {
		namespace, _, _ := strings.Cut(key, "/")
		if strings.HasSuffix(what, " rows") {
			admitted[namespace]++
		}
	}
	if diff := cmp.Diff(map[string]int{"plain": 100, "many": 40, "large": 1, "near": 30, "keys": 21}, admitted); diff != "" {
		t.Errorf("admitted pods by namespace (-want +got):\n%s", diff)
	}
	for _, g := range first.Groups {
		for what, n := range map[string][2]int{
			"spread constraints":              {len(g.SpreadMarks), len(g.Spread)},
			"affinity terms":                  {len(g.TermMarks), len(g.Terms)},
			"affinity terms, of their owners": {len(g.CarrierMarks), len(g.Terms)},
		} {
			if n[0] != n[1] {
				t.Errorf("%s has %d marks for %d %s", g.Pods[0].Key(), n[0], n[1], what)
			}
		}
	}
	for key, why := range map[string]string{
		"near/one": "too many topology spread constraints and terms of pod affinity: a pod may have 128 beyond 16 for each",
		"keys/one": "too many topology spread constraints and terms of pod affinity",
	} {
		if !strings.HasPrefix(want[key], why) {
			t.Errorf("%s: %s, want %s", key, want[key], why)
		}
	}
	if words := first.Space.Words(); words > 450 {
		t.Errorf("a row has %d words: values of rejected pods have bits", words)
	}
	rng := rand.New(rand.NewSource(1))
	for range 3 {
		shuffled := model.NewBuilder()
		for n, i := range rng.Perm(len(pods)) {
			shuffled.UpsertPod(pods[i])
			if n%50 == 0 {
				shuffled.Snapshot(epoch)
			}
		}
		got := shuffled.Snapshot(epoch)
		if diff := cmp.Diff(want, summary(got)); diff != "" {
			t.Errorf("in another order (-want +got):\n%s", diff)
		}
		if got.Space.Words() > 2*first.Space.Words() {
			t.Errorf("a row has %d words, in the first order %d", got.Space.Words(), first.Space.Words())
		}
	}
}

// TestAdmittedAgain checks that rejected pods get rows when others are deleted, and that bound and deleted pods are
// handled correctly.
func TestAdmittedAgain(t *testing.T) {
	pods := crowd()
	b := forgetting(1)
	for i, p := range pods {
		if i%7 == 0 {
			p.State, p.Node, p.Reschedulable = model.Bound, "node-0", true
		}
		b.UpsertPod(p)
	}
	before := b.Snapshot(epoch)
	if len(before.Rejected) == 0 {
		t.Fatal("no pod is rejected")
	}
	var late model.PodSpec
	for i, p := range pods {
		switch {
		case p.Namespace == "many" && i < 130, (p.Namespace == "near" || p.Namespace == "keys") && i < 224:
			b.DeletePod(p.UID)
		case p.Name == "one":
			b.DeletePod(p.UID)
			late = p
		}
	}
	after := b.Snapshot(epoch)
	for key, what := range summary(after) {
		if !strings.HasSuffix(what, " rows") {
			t.Errorf("%s is still rejected: %s", key, what)
		}
	}
	for _, p := range after.Node("node-0").Pods {
		if p.Rejected != nil {
			t.Errorf("%s, which is bound, is still rejected: %s", p.Key(), p.Rejected.Reason)
		}
	}
	b.UpsertPod(late)
	b.UpsertPod(late)
	if got := summary(b.Snapshot(epoch)); !strings.Contains(got["large/one"], "too many alternatives") || !strings.Contains(got["large/two"], " rows") {
		t.Errorf("a pod that is added again: %s; its neighbor: %s", got["large/one"], got["large/two"])
	}
	for _, p := range pods {
		b.DeletePod(p.UID)
	}
	if s := b.Snapshot(epoch); len(s.Groups)+len(s.Rejected)+len(s.Node("node-0").Pods) > 0 {
		t.Errorf("after all pods are gone there are %d groups, %d rejected and %d bound pods", len(s.Groups), len(s.Rejected), len(s.Node("node-0").Pods))
	}
}

// TestVacatedCrowd checks that the rejected pods of a vacated node do not cause a panic because their values have no
// atoms.
func TestVacatedCrowd(t *testing.T) {
	b := forgetting(2)
	for _, p := range crowd() {
		p.State, p.Node, p.Reschedulable = model.Bound, "node-0", true
		b.UpsertPod(p)
	}
	s := b.Snapshot(epoch).Without("node-0")
	if len(s.Rejected) == 0 || len(s.Groups) == 0 {
		t.Errorf("without the node there are %d rejected pods and %d groups", len(s.Rejected), len(s.Groups))
	}
}

// choosyDaemon returns a DaemonSet with the terms of a choosy pod.
func choosyDaemon(namespace, name string, terms int) model.DaemonSpec {
	return model.DaemonSpec{UID: namespace + "-" + name, Name: name, Namespace: namespace,
		Alternatives: choosy(namespace, name, terms).Alternatives, Requests: []quantity.Amount{{Name: "cpu", Value: 1}}}
}

// TestDaemonsAside checks that DaemonSets with very many terms are set aside, independently of the order, that others are
// not, and that they are admitted again when the others are gone.
func TestDaemonsAside(t *testing.T) {
	var all []model.DaemonSpec
	for i := range 10 {
		all = append(all, choosyDaemon("many", fmt.Sprint("d-", i), 600+i), choosyDaemon("more", fmt.Sprint("d-", i), 500),
			choosyDaemon("plain", fmt.Sprint("d-", i), 2))
	}
	all = append(all, choosyDaemon("large", "one", 6000), choosyDaemon("last", "one", 1500))
	rng := rand.New(rand.NewSource(1))
	for range 3 {
		b := forgetting(1)
		b.UpsertNode(model.NodeSpec{Name: "carries", UID: "carries", Stage: model.Initialized,
			Labels: map[string]string{"one": "x", "two": "x"}})
		for _, i := range rng.Perm(len(all)) {
			b.UpsertDaemon(all[i])
			b.Snapshot(epoch)
		}
		b.UpsertPod(namer("plain", 0, 0))
		s := b.Snapshot(epoch)
		count := map[string]int{}
		for _, d := range s.Daemons {
			count[d.Namespace]++
		}
		if diff := cmp.Diff(map[string]int{"plain": 10, "more": 8}, count); diff != "" {
			t.Errorf("DaemonSets by namespace (-want +got):\n%s", diff)
		}
		if words := s.Space.Words(); words > 200 || len(s.Daemons)+len(s.DaemonsAside) != len(all) {
			t.Errorf("a row has %d words, %d DaemonSets are admitted and %d are not", words, len(s.Daemons), len(s.DaemonsAside))
		}
		if why := s.DaemonsAside[0].Why.Reason; !strings.Contains(why, "a DaemonSet may have 2048 terms") {
			t.Errorf("%s: %s", s.DaemonsAside[0].Name, why)
		}
		for _, d := range all {
			if d.Namespace == "more" || d.Namespace == "many" {
				b.DeleteDaemon(d.UID)
			}
		}
		if s = b.Snapshot(epoch); len(s.DaemonsAside) != 1 || len(s.Daemons) != 11 {
			t.Errorf("without the others %d DaemonSets are admitted and %d are not", len(s.Daemons), len(s.DaemonsAside))
		}
		b.UpsertDaemon(choosyDaemon("large", "one", 2))
		if s = b.Snapshot(epoch); len(s.DaemonsAside) != 0 || len(s.Daemons) != 12 {
			t.Errorf("with fewer terms %d DaemonSets are admitted and %d are not", len(s.Daemons), len(s.DaemonsAside))
		}
	}
}

// TestRepelledByAside checks that the anti-affinity of a rejected bound pod still applies, and that pending rejected
// pods do not count.
func TestRepelledByAside(t *testing.T) {
	b := forgetting(1)
	running := bounded("near", "one", 1000, 0)
	running.State, running.Node, running.Reschedulable = model.Bound, "node-0", true
	waiting := bounded("near", "two", 1000, 0)
	ordinary := model.PodSpec{UID: "o", Name: "o", Namespace: "near", Created: epoch, Labels: map[string]string{"app": "near-one-4"}}
	for _, p := range []model.PodSpec{running, waiting, ordinary} {
		b.UpsertPod(p)
	}
	s := b.Snapshot(epoch)
	if got := summary(s)["near/two"]; !strings.HasPrefix(got, "too many") {
		t.Fatalf("the pending pod: %s", got)
	}
	if pods := s.Node("node-0").Pods; len(pods) != 1 || pods[0].Rejected == nil {
		t.Fatalf("the bound pod is not rejected: %v", pods)
	}
	if len(s.Groups) != 1 || len(s.Groups[0].BlockedBy) != 1 {
		t.Fatalf("%d groups", len(s.Groups))
	}
	carrier := s.Groups[0].BlockedBy[0]
	if mark := s.Marks[carrier]; mark.Key != model.LabelHostname || !mark.Carrier {
		t.Errorf("the ordinary pod is blocked by %v", mark)
	}
	counted := 0
	for _, c := range s.Node("node-0").Counts {
		if c.Mark == carrier {
			counted += c.Count
		}
	}
	if counted != 1 {
		t.Errorf("the node has %d pods that block the ordinary one, want 1", counted)
	}
}
