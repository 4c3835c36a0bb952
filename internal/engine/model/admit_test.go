package model_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// choosy is a pod with terms that no other pod has, of two values each.
func choosy(namespace, name string, terms int) model.PodSpec {
	p := model.PodSpec{UID: namespace + "-" + name, Name: name, Namespace: namespace, Created: epoch}
	for i := range terms {
		value := fmt.Sprintf("%s-%s-%d", namespace, name, i)
		p.Alternatives = append(p.Alternatives, []label.Requirement{{Key: "one", Operator: label.NotIn, Values: []string{value}}, {Key: "two", Operator: label.NotIn, Values: []string{value}}})
	}
	return p
}

// crowd is pods of three namespaces: one has far too many terms, one a pod with too many, one is ordinary.
func crowd() []model.PodSpec {
	var pods []model.PodSpec
	for i := range 100 {
		pods = append(pods, choosy("many", fmt.Sprintf("p-%02d", i), 100), choosy("plain", fmt.Sprintf("p-%02d", i), 1+i%2))
	}
	return append(pods, choosy("large", "one", 6000), choosy("large", "two", 10))
}

func summary(s *model.Snapshot) map[string]string {
	result := map[string]string{}
	for _, g := range s.Groups {
		for _, p := range g.Pods {
			result[p.Key()] = fmt.Sprintf("%d rows", len(g.Rows))
		}
	}
	for _, p := range s.Rejected {
		result[p.Key()] = p.Rejected.Reason
	}
	return result
}

// TestAdmission: the pods that cost most are set aside, the same ones in whatever order they come, and those of other namespaces and
// lighter ones are not.
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
	if diff := cmp.Diff(map[string]int{"plain": 100, "many": 41, "large": 1}, admitted); diff != "" {
		t.Errorf("admitted pods by namespace (-want +got):\n%s", diff)
	}
	if words := first.Space.Words(); words > 300 {
		t.Errorf("a row has %d words: values of pods that are set aside have bits", words)
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

// TestAdmittedAgain: pods that were set aside have rows when others go, and what is bound or goes itself is kept right.
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
		t.Fatal("no pod is set aside")
	}
	var late model.PodSpec
	for i, p := range pods {
		switch {
		case p.Namespace == "many" && i < 130:
			b.DeletePod(p.UID)
		case p.Name == "one":
			b.DeletePod(p.UID)
			late = p
		}
	}
	after := b.Snapshot(epoch)
	for key, what := range summary(after) {
		if !strings.HasSuffix(what, " rows") {
			t.Errorf("%s is still set aside: %s", key, what)
		}
	}
	for _, p := range after.Node("node-0").Pods {
		if p.Rejected != nil {
			t.Errorf("%s, which is bound, is still set aside: %s", p.Key(), p.Rejected.Reason)
		}
	}
	b.UpsertPod(late)
	b.UpsertPod(late)
	if got := summary(b.Snapshot(epoch)); !strings.Contains(got["large/one"], "too many alternatives") || !strings.Contains(got["large/two"], " rows") {
		t.Errorf("a pod that comes again: %s; its neighbor: %s", got["large/one"], got["large/two"])
	}
	for _, p := range pods {
		b.DeletePod(p.UID)
	}
	if s := b.Snapshot(epoch); len(s.Groups)+len(s.Rejected)+len(s.Node("node-0").Pods) > 0 {
		t.Errorf("after all pods are gone there are %d groups, %d rejected and %d bound pods", len(s.Groups), len(s.Rejected), len(s.Node("node-0").Pods))
	}
}

// TestVacatedCrowd: a vacated node's pods that are set aside do not panic for want of their values.
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
