package state

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// nodesOf returns the nodes of the snapshot as text: name(claim)stage.
func nodesOf(s *State) string {
	var all []string
	for _, n := range s.Snapshot(start).Nodes {
		all = append(all, n.Name+"("+n.Claim+")"+n.Stage.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func asideOf(s *State) string {
	var all []string
	for _, o := range s.Rejected() {
		all = append(all, o.Kind+" "+o.Name+" "+o.Why.Field)
	}
	return strings.Join(all, "; ")
}

// TestMachines checks that claims and nodes, added in every order, give the same nodes of the model.
func TestMachines(t *testing.T) {
	young := "creationTimestamp: '2026-11-20T09:00:00Z'"
	named := objecttest.Claim(t, "c", "1", "1", "id-1", "")
	named.Status.NodeName = "n2"
	foreign := objecttest.Claim(t, "c", "1", "1", "", "")
	foreign.Spec.NodeClassRef.Kind = "EC2NodeClass"
	broken := objecttest.Claim(t, "broken", "9", "1", "", "")
	broken.Spec.Requirements = append(broken.Spec.Requirements, poolRequirement("a", "Near"))
	owned := objecttest.Node(t, "n", "3", "1", "id-1", "karpenter.sh/registered: 'true'")
	owned.SetOwnerReferences([]metav1.OwnerReference{{Kind: "NodeClaim", Name: "b", UID: objecttest.Claim(t, "b", "2", "1", "id-1",
		"").GetUID()}})
	tests := []struct {
		name    string
		objects []client.Object
		want    string
		aside   string
	}{
		{"claim alone", []client.Object{objecttest.Claim(t, "c", "1", "1", "", "")}, "c(c)launching", ""},
		{"launched claim", []client.Object{objecttest.Claim(t, "c", "1", "1", "id-1", "")}, "c(c)launched", ""},
		{"claim and node", []client.Object{objecttest.Claim(t, "c", "1", "1", "id-1", ""), objecttest.Node(t, "n", "2", "1", "id-1", objecttest.Registered)},
			"n(c)registered", ""},
		{"claim and node of one name", []client.Object{objecttest.Claim(t, "c", "1", "1", "id-1", ""), objecttest.Node(t, "c", "2", "1", "id-1", objecttest.Registered)},
			"c(c)registered", ""},
		{"unmanaged node", []client.Object{objecttest.Node(t, "n", "2", "1", "", "")}, "n()initialized", ""},
		{"node whose claim does not know of it yet",
			[]client.Object{objecttest.Claim(t, "c", "1", "1", "", ""), objecttest.Node(t, "n", "2", "1", "id-1", "karpenter.sh/nodepool: pool")},
			"c(c)launching", ""},
		{"the same under one name", []client.Object{objecttest.Claim(t, "c", "1", "1", "", ""),
			objecttest.Node(t, "c", "2", "1", "id-1", "karpenter.sh/nodepool: pool")}, "c(c)launching", ""},
		{"registered node without a claim", []client.Object{objecttest.Node(t, "n", "2", "1", "id-1", objecttest.Registered)}, "n()initialized", ""},
		{"registered node without a machine", []client.Object{objecttest.Node(t, "n", "2", "1", "", objecttest.Registered)}, "n()initialized",
			"Node n spec.providerID"},
		{"two nodes of one machine", []client.Object{objecttest.Claim(t, "c", "1", "1", "id-1", ""), objecttest.Node(t, "n1", "2", "1", "id-1", objecttest.Registered),
			objecttest.Node(t, "n2", "3", "1", "id-1", objecttest.Registered)}, "n1(c)registered", "Node n2 spec.providerID"},
		{"two nodes, the claim names one", []client.Object{named, objecttest.Node(t, "n1", "2", "1", "id-1", objecttest.Registered),
			objecttest.Node(t, "n2", "3", "1", "id-1", objecttest.Registered)}, "n2(c)registered", "Node n1 spec.providerID"},
		{"two nodes of one unclaimed machine", []client.Object{objecttest.Node(t, "n1", "2", "1", "id-1", ""),
			objecttest.Node(t, "n2", "3", "1", "id-1", objecttest.Registered)}, "n1()initialized n2()initialized", "Node n2 spec.providerID"},
		{"two claims of one machine", []client.Object{objecttest.Claim(t, "a", "1", "1", "id-1", young), objecttest.Claim(t, "b", "2", "1", "id-1", ""),
			objecttest.Node(t, "n", "3", "1", "id-1", objecttest.Registered)}, "n(b)registered", "NodeClaim a status.providerID"},
		{"an older claim whose provider ID was edited",
			[]client.Object{objecttest.Claim(t, "a", "1", "1", "id-1", ""), objecttest.Claim(t, "b", "2", "1", "id-1", young), owned},
			"n(b)registered", "NodeClaim a status.providerID"},
		{"a foreign node has the claim's name", []client.Object{objecttest.Claim(t, "c", "1", "1", "", ""), objecttest.Node(t, "c", "2", "1", "id-2", "")},
			"c()initialized", "NodeClaim c metadata.name"},
		{"another claim's node has the claim's name",
			[]client.Object{objecttest.Claim(t, "c", "1", "1", "", ""), objecttest.Claim(t, "d", "3", "1", "id-2", ""),
				objecttest.Node(t, "c", "2", "1", "id-2", "karpenter.sh/nodepool: pool")}, "c(d)launched", "NodeClaim c metadata.name"},
		{"another provider's claim", []client.Object{foreign, objecttest.Node(t, "n", "2", "1", "id-1", objecttest.Registered)}, "n()initialized", ""},
		{"a broken claim beside a good one", []client.Object{broken, objecttest.Claim(t, "c", "1", "1", "", "")}, "c(c)launching",
			"NodeClaim broken spec.requirements[0].operator"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			permute(test.objects, func(objects []client.Object) {
				s := newState(Config{})
				for _, obj := range objects {
					s.Saw(obj)
				}
				if got := nodesOf(s); got != test.want {
					t.Errorf("nodes: %q, want %q", got, test.want)
				}
				if got := asideOf(s); got != test.aside {
					t.Errorf("set aside: %q, want %q", got, test.aside)
				}
				removeAll(t, s, objects)
				for kind, count := range s.Drain().Rejected {
					if count != 0 {
						t.Errorf("%d of kind %s are counted as set aside, want none", count, kind)
					}
				}
			})
		})
	}
}

// removeAll deletes one object after the other. Each time the store is like a new one with the remaining objects.
func removeAll(t *testing.T, s *State, objects []client.Object) {
	t.Helper()
	for i, obj := range objects {
		lost(s, obj)
		again := newState(Config{})
		for _, left := range objects[i+1:] {
			again.Saw(left)
		}
		if got, want := nodesOf(s), nodesOf(again); got != want {
			t.Errorf("after %s was deleted: %q, want %q", obj.GetName(), got, want)
		}
		if got, want := asideOf(s), asideOf(again); got != want {
			t.Errorf("after %s was deleted, aside: %q, want %q", obj.GetName(), got, want)
		}
	}
	if m := s.machines; len(m.groups)+len(m.claims)+len(m.nodes)+len(m.specs)+len(s.objects[Claims])+len(s.objects[Nodes]) != 0 {
		t.Errorf("state of deleted objects is kept: units %v", slices.Collect(maps.Keys(m.groups)))
	}
}

func permute[T any](list []T, f func([]T)) {
	if len(list) < 2 {
		f(list)
		return
	}
	for i := range list {
		rest := slices.Concat(list[:i], list[i+1:])
		permute(rest, func(tail []T) { f(slices.Concat([]T{list[i]}, tail)) })
	}
}

// TestLaunchedClaimBecomesItsNode checks that the node's name replaces the claim's, with the pods and the nomination.
func TestLaunchedClaimBecomesItsNode(t *testing.T) {
	s := newState(Config{})
	s.Saw(objecttest.Claim(t, "c", "1", "1", "", ""))
	s.Nominate("c", start.Add(time.Minute))
	s.Saw(objecttest.Pod(t, "p", "3", "1", "n"))
	s.Saw(objecttest.Claim(t, "c", "1", "2", "id-1", ""))
	s.Saw(objecttest.Node(t, "n", "2", "1", "id-1", objecttest.Registered))
	snap := s.Snapshot(start)
	n := snap.Node("n")
	switch {
	case n == nil:
		t.Fatalf("n is nil")
	case snap.Node("c") != nil:
		t.Fatalf(`snap.Node("c") is %v, want nil, node n is %v`, snap.Node("c"), n)
	case snap.Claim("c") != n:
		t.Fatalf(`snap.Claim("c") is %v, want %v`, snap.Claim("c"), n)
	}
	if len(n.Pods) != 1 || !n.NominatedUntil.Equal(start.Add(time.Minute)) {
		t.Errorf("%d pods, nominated until %v", len(n.Pods), n.NominatedUntil)
	}
}

func TestNominate(t *testing.T) {
	s := newState(Config{})
	s.Saw(objecttest.Node(t, "n", "2", "1", "", ""))
	until := func() time.Time { return s.Snapshot(start).Node("n").NominatedUntil }
	s.Nominate("n", start.Add(time.Minute))
	s.Nominate("n", start)
	s.Nominate("unknown", start)
	if got := until(); !got.Equal(start.Add(time.Minute)) {
		t.Errorf("an earlier end shortened the nomination to %v", got)
	}
	s.Saw(objecttest.Node(t, "n", "2", "2", "", "a: b"))
	if got := until(); !got.Equal(start.Add(time.Minute)) {
		t.Errorf("a node event changed the nomination to %v", got)
	}
	s.Drain()
	s.Nominate("n", start.Add(90*time.Second))
	until()
	if change := s.Drain().Changes; change != NodesNominated {
		t.Errorf("a nomination is the change %b, want one for the loop that would remove the node, and none for others", change)
	}
	s.Advance(start.Add(2 * time.Minute))
	if len(s.machines.nominated) != 0 {
		t.Error("nominations that have ended are kept")
	}
}

// TestRecreated checks that an object with the same name and another UID inherits nothing.
func TestRecreated(t *testing.T) {
	s := newState(Config{})
	s.Saw(objecttest.Node(t, "n", "1", "1", "id-1", ""))
	s.Saw(objecttest.Pod(t, "p", "2", "2", "n"))
	s.Saw(objecttest.Pod(t, "p", "3", "3", ""))
	s.Saw(objecttest.Node(t, "n", "4", "4", "id-2", ""))
	snap := s.Snapshot(start)
	if got := len(snap.Node("n").Pods); got != 0 {
		t.Errorf("%d pods of an earlier node with the same name are on the node", got)
	}
	if got := snap.Node("n").ProviderID; got != "id-2" {
		t.Errorf("the node's provider ID is %s", got)
	}
	if diff := cmp.Diff([]string{"3"}, pendingUIDs(snap)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	lost(s, objecttest.Pod(t, "p", "3", "3", ""))
	if got := pendingUIDs(s.Snapshot(start)); len(got) != 0 {
		t.Errorf("pending: %v", got)
	}
}

func pendingUIDs(snap *model.Snapshot) []string {
	var uids []string
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			uids = append(uids, p.UID)
		}
	}
	slices.Sort(uids)
	return uids
}
