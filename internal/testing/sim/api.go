package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// kind is a kind of object.
type kind uint8

const (
	podKind kind = iota
	nodeKind
	claimKind
	pdbKind
	kinds // the number of kinds
)

// key identifies an object.
type key struct {
	kind kind
	name string
}

// meta holds the common fields of all objects. Objects are immutable once they are in the API: a change is a new
// object.
type meta struct {
	name, uid string
	version   int
	created   time.Time
	deleting  time.Time // zero: not being deleted
}

func (m *meta) header() *meta { return m }

type object interface {
	header() *meta
	key() key
	copied() object
}

// pod is a pod; daemon pods are created bound.
type pod struct {
	meta
	app string
	// revision is the revision of the app's rollout that created the pod.
	revision int
	// bare pods have no controller that the API shows.
	bare          bool
	requests      []quantity.Amount
	alternatives  [][]label.Requirement
	tolerations   []model.Toleration
	priority      int32
	daemon        bool
	node          string
	nominated     string
	unschedulable bool
	ready         bool
	// protected is the end of its do-not-disrupt protection, zero for none, model.Forever for no end; forbade is when
	// it was set.
	protected, forbade time.Time
	// cost of evicting it, in thousandths.
	cost int64
	// relation holds its constraints on other pods; disk is the name of its disk, zone the zone of the disk, empty
	// until it is created.
	relation   relation
	disk, zone string
	// making is the node on which kube-scheduler preempts pods for it; bound is when it was bound.
	making string
	bound  time.Time
}

// claim is a NodeClaim. Times are those of its conditions, zero while they are not true.
type claim struct {
	meta
	pool         string
	requirements []label.Requirement
	labels       map[string]string
	requests     []quantity.Amount
	taints       []model.Taint
	command      string
	reason       string
	provider     string
	node         string
	capacity     []quantity.Amount
	allocatable  []quantity.Amount
	lastPodEvent time.Time
	// launchedFor are the pods that it was launched for.
	launchedFor []model.PodRef
	// replacement says that a consolidation launched it, renewal that it was launched in place of a drifted node.
	replacement, renewal bool
	// consolidated is when a consolidation last moved pods to it.
	consolidated time.Time
	// expecting is when pods of nodes being removed were last moved to it.
	expecting time.Time
	// generation of the pool's template that it was made from; drifted is when it was found that the pool has
	// another.
	generation int
	drifted    time.Time
	// expireAfter and grace (terminationGracePeriod) are zero for never and none.
	expireAfter, grace time.Duration

	launched, registered, initialized, terminating time.Time
}

// pdb is a PodDisruptionBudget for the pods of an app.
type pdb struct {
	meta
	app string
	// most is the number that may be unavailable if byMost is set, else least is the number that must be available.
	byMost      bool
	most, least int
	// always allows the eviction of pods that are not ready.
	always bool
	status pdbStatus
}

// pdbStatus is the status that the disruption controller last wrote.
type pdbStatus struct{ allowed, healthy, desired, expected int }

// node is a Kubernetes node.
type node struct {
	meta
	provider    string
	labels      map[string]string
	taints      []model.Taint
	capacity    []quantity.Amount
	allocatable []quantity.Amount
	ready       bool
	registered  bool
	initialized bool
	// silent says that the condition Ready is Unknown.
	silent bool
}

func (p *pod) key() key   { return key{podKind, p.name} }
func (c *claim) key() key { return key{claimKind, c.name} }
func (n *node) key() key  { return key{nodeKind, n.name} }
func (b *pdb) key() key   { return key{pdbKind, b.name} }

func (p *pod) copied() object   { q := *p; return &q }
func (c *claim) copied() object { d := *c; return &d }
func (n *node) copied() object  { m := *n; return &m }
func (b *pdb) copied() object   { c := *b; return &c }

var (
	disruptedTaint    = model.Taint{Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}
	unregisteredTaint = model.Taint{Key: "karpenter.sh/unregistered", Effect: model.NoExecute}
	// The node lifecycle controller sets notReadyTaint on nodes with the condition Ready=False, and unreachableTaint on
	// those with Ready=Unknown. They tell kube-scheduler and the controller that pods cannot use the node: neither
	// reads the condition for that.
	notReadyTaint    = model.Taint{Key: "node.kubernetes.io/not-ready", Effect: model.NoSchedule}
	unreachableTaint = model.Taint{Key: "node.kubernetes.io/unreachable", Effect: model.NoSchedule}
)

func (n *node) tainted(t model.Taint) bool { return slices.Contains(n.taints, t) }

func (n *node) taint(t model.Taint) { n.taints = append(slices.Clone(n.taints), t) }

func (n *node) untaint(t model.Taint) {
	n.taints = slices.DeleteFunc(slices.Clone(n.taints), func(other model.Taint) bool { return other == t })
}

// turn sets the condition Ready, which is Unknown if silent, together with its taint.
func (n *node) turn(ready, silent bool) {
	n.ready, n.silent = ready, silent
	n.untaint(notReadyTaint)
	n.untaint(unreachableTaint)
	switch {
	case silent:
		n.taint(unreachableTaint)
	case !ready:
		n.taint(notReadyTaint)
	}
}

// change is one event of a watch; its object is nil if the object with the UID was deleted.
type change struct {
	key    key
	uid    string
	at     time.Time
	object object
}

// api is the API server: the current objects and the log that watches read.
type api struct {
	now     func() time.Time
	version int
	objects [kinds]map[string]object
	log     [kinds][]change
	lists   [kinds]listing
	uids    int
	// changed is the time of the last write.
	changed time.Time
}

func newAPI(now func() time.Time) *api {
	a := &api{now: now, changed: now()}
	for k := range a.objects {
		a.objects[k] = map[string]object{}
	}
	return a
}

func (a *api) put(o object) {
	a.version++
	a.changed = a.now()
	k := o.key()
	o.header().version = a.version
	a.objects[k.kind][k.name] = o
	a.log[k.kind] = append(a.log[k.kind], change{k, o.header().uid, a.changed, o})
}

// create adds an object with a new UID. It returns false if the name exists.
func (a *api) create(o object) bool {
	k := o.key()
	if a.objects[k.kind][k.name] != nil {
		return false
	}
	a.uids++
	h := o.header()
	h.uid, h.created = fmt.Sprintf("uid-%d", a.uids), a.now()
	a.put(o)
	return true
}

// read returns the object, nil if there is none.
func (a *api) read(k key) object { return a.objects[k.kind][k.name] }

// update applies edit to the object and writes the result. It returns nil if there is no object with the UID. A
// nonzero version is an optimistic lock: if the object has another version, conflict is true and nothing is written.
func (a *api) update(k key, uid string, version int, edit func(object)) (written object, conflict bool) {
	o := a.read(k)
	switch {
	case o == nil || o.header().uid != uid:
		return nil, false
	case version != 0 && o.header().version != version:
		return nil, true
	}
	fresh := o.copied()
	edit(fresh)
	a.put(fresh)
	return fresh, false
}

// markDeleted begins the deletion of an object with a finalizer, or of a pod.
func (a *api) markDeleted(k key, uid string) object {
	o := a.read(k)
	if o == nil || o.header().uid != uid || !o.header().deleting.IsZero() {
		return nil
	}
	fresh, _ := a.update(k, uid, 0, func(o object) { o.header().deleting = a.now() })
	return fresh
}

// remove removes an object.
func (a *api) remove(k key, uid string) {
	o := a.read(k)
	if o == nil || o.header().uid != uid {
		return
	}
	a.version++
	a.changed = a.now()
	delete(a.objects[k.kind], k.name)
	a.log[k.kind] = append(a.log[k.kind], change{k, uid, a.changed, nil})
}

func (a *api) pods() []*pod     { return list[*pod](a.sorted(podKind)) }
func (a *api) nodes() []*node   { return list[*node](a.sorted(nodeKind)) }
func (a *api) claims() []*claim { return list[*claim](a.sorted(claimKind)) }
func (a *api) pdbs() []*pdb     { return list[*pdb](a.sorted(pdbKind)) }

func (a *api) pod(name string) *pod     { p, _ := a.read(key{podKind, name}).(*pod); return p }
func (a *api) node(name string) *node   { n, _ := a.read(key{nodeKind, name}).(*node); return n }
func (a *api) claim(name string) *claim { c, _ := a.read(key{claimKind, name}).(*claim); return c }
