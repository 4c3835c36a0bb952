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
	kinds // their number
)

// key names an object.
type key struct {
	kind kind
	name string
}

// meta is what every object has. Objects are immutable once they are in the API: a change is a new object.
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

// pod is a pod; those of a daemon are bound from the start.
type pod struct {
	meta
	app string
	// revision is that of the app's rollout by which it was made.
	revision      int
	requests      []quantity.Amount
	alternatives  [][]label.Requirement
	tolerations   []model.Toleration
	priority      int32
	daemon        bool
	node          string
	nominated     string
	unschedulable bool
	ready         bool
	// protected is the end of its do-not-disrupt, zero for none, model.Forever for no end; forbade is when somebody said so.
	protected, forbade time.Time
	// cost of evicting it, thousandths.
	cost int64
	// relation is what it asks of other pods; disk is the name of its disk, zone where that is, empty while it is not made.
	relation   relation
	disk, zone string
	// making is the node on which kube-scheduler makes room for it; bound is when it came to its node.
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
	// promised are the uids of the pods that it was bought for.
	promised []string
	// reserved are the words of the pods that plans put there since.
	reserved []string
	// owners are the apps, by index of promised, of those that ran elsewhere.
	owners []string
	// replacement: a consolidation bought it.
	replacement bool
	// consolidated is when a consolidation last sent pods there.
	consolidated time.Time
	// expecting is when pods that had to leave their nodes were last sent there.
	expecting time.Time
	// generation of the pool's template that it was made from; drifted since the pool has another.
	generation int
	drifted    time.Time
	// expireAfter and grace (terminationGracePeriod) are zero for never and none.
	expireAfter, grace time.Duration
	// repair is the condition for which the claim is about to be deleted, ends when its drain then does.
	repair string
	ends   time.Time

	launched, registered, initialized, terminating time.Time
}

// pdb is a PodDisruptionBudget over the pods of an app.
type pdb struct {
	meta
	app string
	// most that may be unavailable when byMost, else the least that must be available.
	byMost      bool
	most, least int
	// always lets pods go that are not ready.
	always bool
	status pdbStatus
}

// pdbStatus is what the disruption controller last wrote.
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
	// silent: the condition Ready is Unknown, since turned. ill is since when the node has a condition that calls for repair.
	silent      bool
	turned, ill time.Time
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
	// unreachableTaint is the node lifecycle controller's, on nodes whose condition Ready is Unknown.
	unreachableTaint = model.Taint{Key: "node.kubernetes.io/unreachable", Effect: model.NoSchedule}
)

func (n *node) tainted(t model.Taint) bool { return slices.Contains(n.taints, t) }

func (n *node) taint(t model.Taint) { n.taints = append(slices.Clone(n.taints), t) }

func (n *node) untaint(t model.Taint) {
	n.taints = slices.DeleteFunc(slices.Clone(n.taints), func(other model.Taint) bool { return other == t })
}

// change is one event of a watch; its object is nil when the object of that uid is gone.
type change struct {
	key    key
	uid    string
	at     time.Time
	object object
}

// api is the API server: the objects of now and the log that watches read.
type api struct {
	now     func() time.Time
	version int
	objects [kinds]map[string]object
	log     [kinds][]change
	lists   [kinds]listing
	uids    int
	// changed is when anything was written last.
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

// create adds an object under a uid of its own; false when the name is taken.
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

// update writes what edit makes of the object. It is nil when there is no object of that uid. A version other than
// zero is an optimistic lock: conflict is true, and nothing happens, when the object moved on.
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

// markDeleted begins the deletion of an object that has a finaliser, or of a pod.
func (a *api) markDeleted(k key, uid string) object {
	o := a.read(k)
	if o == nil || o.header().uid != uid || !o.header().deleting.IsZero() {
		return nil
	}
	fresh, _ := a.update(k, uid, 0, func(o object) { o.header().deleting = a.now() })
	return fresh
}

// remove ends an object.
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
