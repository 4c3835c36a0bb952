package state

import (
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Representation: a machine group is all claims and nodes with one provider ID; a claim or node without a provider ID is its
// own group. Each event computes the specs of the affected groups again, from the current objects only, so that the
// result does not depend on the order of events:
//
//	claim, no node           one node of the model, with the claim's name
//	claim and node           one, with the node's name
//	node, no claim           one, unmanaged (listed in Rejected if it has a pool label and no provider ID); none while it
//	                         has a pool label and is not registered, because its claim is about to get its provider
//	                         ID and it would count twice
//	more of either           one counts: the claim that owns a node of the machine, else the oldest; of nodes, the one
//	                         that the claim names, else the oldest. The others are listed in Rejected
//
// Nodes and claims share one name space in the model. A claim without a node yields to an unmanaged node with its
// name. Cost of an event: the size of its group, usually two, and a comparison with the previous specs.

type machineGroup struct {
	claims, nodes []string
	// synced is the last computed outcome.
	synced outcome
}

// outcome is the representation of claims and nodes in the model.
type outcome struct {
	specs    []*model.NodeSpec
	rejected []RejectedObject
}

type machines struct {
	*base
	groups map[string]*machineGroup
	// claims and nodes hold the group of each object, by name.
	claims, nodes map[string]string
	// specs holds the specs in the builder, by name in the model.
	specs map[string]*model.NodeSpec
	// nominated holds the end of each nomination, by name of node or claim.
	nominated map[string]time.Time
}

func newMachines(b *base) *machines {
	return &machines{
		base:   b,
		groups: map[string]*machineGroup{}, claims: map[string]string{}, nodes: map[string]string{},
		specs: map[string]*model.NodeSpec{}, nominated: map[string]time.Time{},
	}
}

// forget removes nominations that have ended.
func (m *machines) forget(now time.Time) {
	for name, until := range m.nominated {
		if until.Before(now) {
			delete(m.nominated, name)
		}
	}
}

// nominate records the end of a nomination. A later end that was recorded earlier is kept.
func (m *machines) nominate(node string, until time.Time) {
	until = until.UTC().Round(0)
	if m.nominated[node].After(until) {
		return
	}
	m.nominated[node] = until
	m.syncGroups(m.nodes[node], m.claims[node])
}

func (m *machines) applyNode(name string) {
	node, key := m.node(name), ""
	if node != nil {
		key = "node/" + name
		if node.Spec.ProviderID != "" {
			key = "id/" + node.Spec.ProviderID
		}
	}
	before := m.move(members{m.nodes, func(u *machineGroup) *[]string { return &u.nodes }}, name, key)
	m.syncGroups(before, key, m.claims[name])
}

func (m *machines) applyClaim(name string) {
	claim, key := m.claim(name), ""
	if claim != nil && m.vocabulary.Owns(claim.Spec.NodeClassRef.Group, claim.Spec.NodeClassRef.Kind) &&
		m.vocabulary.Selection.Admits(claim.Labels) {
		key = "claim/" + name
		if claim.Status.ProviderID != "" {
			key = "id/" + claim.Status.ProviderID
		}
	}
	before := m.move(members{m.claims, func(u *machineGroup) *[]string { return &u.claims }}, name, key)
	m.syncGroups(before, key)
}

// members are the claims, or the nodes, of all groups: the group of each by its name, and the list of a group.
type members struct {
	index map[string]string
	list  func(*machineGroup) *[]string
}

// move puts an object into the group with the key, or into none if the key is empty, and returns the key of its
// previous group.
func (m *machines) move(kind members, name, key string) string {
	before := kind.index[name]
	if before == key {
		return before
	}
	if u := m.groups[before]; u != nil {
		list := kind.list(u)
		*list = slices.DeleteFunc(*list, func(member string) bool { return member == name })
	}
	if key == "" {
		delete(kind.index, name)
		return before
	}
	kind.index[name] = key
	u := m.groups[key]
	if u == nil {
		u = &machineGroup{}
		m.groups[key] = u
	}
	list := kind.list(u)
	*list = append(*list, name)
	return before
}

// syncGroups updates the builder with the current state of groups; it ignores empty and unknown keys. Claims that have
// the name of a node are updated too, because they yield to it or replace it.
func (m *machines) syncGroups(keys ...string) {
	for _, key := range keys {
		if u := m.groups[key]; u != nil {
			for _, node := range u.nodes {
				keys = append(keys, m.claims[node])
			}
		}
	}
	slices.Sort(keys)
	var old, fresh outcome
	for _, key := range slices.Compact(keys) {
		u := m.groups[key]
		if u == nil {
			continue
		}
		old.specs, old.rejected = append(old.specs, u.synced.specs...), append(old.rejected, u.synced.rejected...)
		u.synced = m.describe(u)
		fresh.specs, fresh.rejected = append(fresh.specs, u.synced.specs...), append(fresh.rejected, u.synced.rejected...)
		if len(u.claims) == 0 && len(u.nodes) == 0 {
			delete(m.groups, key)
		}
	}
	m.syncNodes(old.specs, fresh.specs)
	news := false
	for _, object := range old.rejected {
		if !slices.ContainsFunc(fresh.rejected, func(f RejectedObject) bool { return f.key() == object.key() }) {
			news = m.rejected.remove(object.key()) || news
		}
	}
	for _, object := range fresh.rejected {
		news = m.rejected.add(object) || news
	}
	if news {
		m.notify(RejectedChanged)
	}
}

func (m *machines) syncNodes(old, fresh []*model.NodeSpec) {
	var change Change
	for _, spec := range old {
		if !slices.ContainsFunc(fresh, func(f *model.NodeSpec) bool { return f.Name == spec.Name }) {
			m.builder.DeleteNode(spec.Name)
			delete(m.specs, spec.Name)
			change |= NodesChanged
			if spec.Claim == "" || !slices.ContainsFunc(fresh, func(f *model.NodeSpec) bool { return f.Claim == spec.Claim }) {
				change |= NodesLost // otherwise it only has its node's name from now on
				m.reportRemoval(spec)
			}
		}
	}
	for _, spec := range fresh {
		before, known := m.specs[spec.Name]
		m.specs[spec.Name] = spec // also if it is the same: one copy is enough
		if known && reflect.DeepEqual(before, spec) {
			continue
		}
		if !known {
			before = &model.NodeSpec{}
		}
		hurried := spec.Deleting && !spec.DrainEnds.IsZero() && (before.DrainEnds.IsZero() || spec.DrainEnds.Before(before.DrainEnds))
		if spec.Deleting && !before.Deleting || hurried || plan.Leaving(spec) && !plan.Leaving(before) {
			change |= NodesLost
		}
		if known && spec.Deleting {
			m.reportRemoval(before)
		}
		m.builder.UpsertNode(*spec)
		nominated := *before
		if nominated.NominatedUntil = spec.NominatedUntil; known && reflect.DeepEqual(&nominated, spec) {
			change |= NodesNominated
		} else {
			change |= NodesChanged
		}
	}
	m.notify(change)
}

// reportRemoval reports that the node of a claim is being removed, or is gone. No later change is reported.
func (m *machines) reportRemoval(before *model.NodeSpec) {
	if before.Claim != "" && !before.Deleting {
		m.news.Removed = append(m.news.Removed, *before)
	}
}

// describe computes the outcome of a group.
func (m *machines) describe(u *machineGroup) outcome {
	var out outcome
	machine := m.machineOf(u)
	specs, refused := machine.Represent(m.vocabulary, convert.Beside{CSINode: m.csiNode, Taken: m.nodeNameTaken})
	for _, spec := range specs {
		out.add(m, spec)
	}
	for _, r := range refused {
		k := Nodes
		if _, claim := r.Object.(*karpv1.NodeClaim); claim {
			k = Claims
		}
		out.reject(k, r.Object, r.Why)
	}
	return out
}

// add adds a spec, with the nomination under either of its names.
func (o *outcome) add(m *machines, spec model.NodeSpec) {
	spec.NominatedUntil = m.nominated[spec.Name]
	if until := m.nominated[spec.Claim]; until.After(spec.NominatedUntil) {
		spec.NominatedUntil = until
	}
	o.specs = append(o.specs, &spec)
}

func (o *outcome) reject(k Kind, object metav1.Object, why model.Rejection) {
	o.rejected = append(o.rejected, RejectedObject{Kind: k.String(), Name: object.GetName(), UID: object.GetUID(), Why: why})
}

// nodeNameTaken reports whether the model has a node of that name that does not belong to the claim of that name.
func (m *machines) nodeNameTaken(name string) bool {
	node := m.node(name)
	if node == nil {
		return false
	}
	u := m.groups[m.nodes[name]]
	return convert.Visible(node) || u != nil && len(u.claims) > 0
}

func (m *machines) machineOf(u *machineGroup) convert.Machine {
	machine := convert.Machine{Claims: make([]*karpv1.NodeClaim, 0, len(u.claims)), Nodes: make([]*corev1.Node, 0, len(u.nodes))}
	for _, name := range u.claims {
		machine.Claims = append(machine.Claims, m.claim(name))
	}
	for _, name := range u.nodes {
		machine.Nodes = append(machine.Nodes, m.node(name))
	}
	return machine
}
