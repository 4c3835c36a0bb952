package world

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

// The properties of plans and of the removals that commands order. They are based on what the process can know, and share no
// rule with the engine.
const (
	// audited: an independent audit finds no problem in any plan.
	audited = "audited"
	// announced: a node is removed only by a command that is stored on its claim, so that the command survives a crash.
	announced = "announced"
	// withinBudgets: at no time are more nodes of a pool being removed voluntarily than its budgets allow.
	withinBudgets = "within budgets"
	// emptyMeansEmpty: emptiness removes no node on which a pod runs.
	emptyMeansEmpty = "empty means empty"
	// pdbsHold: no command removes a node while a PodDisruptionBudget protects a pod on it. Otherwise its drain does not
	// end, and the node is neither usable nor gone meanwhile.
	pdbsHold = "PDBs hold"
	// protectionHolds: no command removes a node, and no pod is evicted, against a do-not-disrupt annotation.
	protectionHolds = "protection holds"
	// replacedFirst: a node is removed only after its replacements exist.
	replacedFirst = "replaced first"
	// staticKept: no node of a static pool is removed as surplus unless the pool has too many.
	staticKept = "static kept"
)

// disruptions judges the plans of a process, and the removals of its loops.
type disruptions struct {
	*World

	// loop is the loop that runs now: disrupt, static, or empty for none.
	loop string
	// leaving holds the claims that commands have deleted, by name.
	leaving map[string]*karpv1.NodeClaim
}

// judged returns the function that plans, with the judge behind it.
func (d *disruptions) judged(p *process, schedule func(*model.Snapshot) *plan.Provision) func(*model.Snapshot) *plan.Provision {
	if !d.config.Judge {
		return schedule
	}
	return func(snap *model.Snapshot) *plan.Provision {
		decided := schedule(snap)
		for _, problem := range audit.Provision(reserve.Ahead(p.store.Snapshot(snap.Now), nil), decided) {
			d.fail(audited, "%s", problem)
		}
		return decided
	}
}

// during runs a pass of a loop.
func (d *disruptions) during(loop string, do func()) {
	d.loop = loop
	do()
	d.loop = ""
}

// saw checks the deletion of a claim by a loop.
func (d *disruptions) saw(was, is *karpv1.NodeClaim) {
	if !d.config.Judge || d.loop == "" || was == nil || !was.DeletionTimestamp.IsZero() || is != nil && is.DeletionTimestamp.IsZero() {
		return
	}
	if d.loop == "static" {
		d.surplus(was)
		return
	}
	c := commandOf(was)
	if c == nil {
		d.fail(announced, "claim %s is deleted without a command on it", was.Name)
		return
	}
	d.leaving[was.Name] = was
	d.within(was, c)
	d.leaves(was, c)
	for _, r := range c.Replacements {
		if n := d.find(r.Name); n == nil || !n.DeletionTimestamp.IsZero() || n.Status.NodeName == "" {
			d.fail(replacedFirst, "claim %s is deleted before %s is there", was.Name, r.Name)
		}
	}
}

func (d *disruptions) find(claim string) *karpv1.NodeClaim {
	c, _ := d.api.get(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}}).(*karpv1.NodeClaim)
	return c
}

// surplus checks staticKept, as far as the process knows.
func (d *disruptions) surplus(was *karpv1.NodeClaim) {
	pool, _ := d.process.view.of(kindOf(&karpv1.NodePool{})).objects[client.ObjectKey{Name: was.Labels[karpv1.LabelNodePool]}].(*karpv1.NodePool)
	n := int64(0)
	for _, o := range d.process.view.list(kindOf(&karpv1.NodeClaim{}), "", "") {
		if c := o.(*karpv1.NodeClaim); c.Labels[karpv1.LabelNodePool] == was.Labels[karpv1.LabelNodePool] && c.DeletionTimestamp.IsZero() {
			n++
		}
	}
	if pool == nil || pool.Spec.Replicas == nil || n <= *pool.Spec.Replicas {
		d.fail(staticKept, "claim %s is removed as too many of %d", was.Name, n)
	}
}

// within checks withinBudgets. A node that is gone no longer counts; only its claim remains to be finalized.
func (d *disruptions) within(was *karpv1.NodeClaim, c *plan.Command) {
	pool := was.Labels[karpv1.LabelNodePool]
	leaving, total := 0, map[string]bool{}
	for _, other := range d.leaving {
		if other.Labels[karpv1.LabelNodePool] == pool && d.hostOf(other.Status.ProviderID) != nil {
			leaving++
		}
	}
	for _, in := range []*shelves{&d.api.shelves, &d.process.view.shelves} {
		for _, o := range in.list(kindOf(was), "", "") {
			n := o.(*karpv1.NodeClaim)
			if n.Labels[karpv1.LabelNodePool] == pool && n.Condition(karpv1.ConditionInitialized).IsTrue() {
				total[n.Name] = true
			}
		}
	}
	for _, p := range d.nodePools() {
		if most := mostOf(p, len(total)); p.Name == pool && leaving > most {
			d.fail(withinBudgets, "%d of %d nodes of %s are leaving for %s, %d may", leaving, len(total), pool, c.Reason, most)
		}
	}
}

// mostOf returns the minimum of the pool's budgets, which are for all reasons and times; percentages round up.
func mostOf(pool *karpv1.NodePool, total int) int {
	least := 1 << 20
	for _, b := range pool.Spec.Disruption.Budgets {
		n, _ := strconv.Atoi(strings.TrimSuffix(b.Nodes, "%"))
		if strings.HasSuffix(b.Nodes, "%") {
			n = (total*n + 99) / 100
		}
		least = min(least, n)
	}
	return least
}

// leaves checks emptyMeansEmpty, pdbsHold and protectionHolds.
func (d *disruptions) leaves(was *karpv1.NodeClaim, c *plan.Command) {
	for _, o := range d.process.view.list(kindOf(&corev1.Pod{}), "", "") {
		p := o.(*corev1.Pod)
		if p.Spec.NodeName != was.Status.NodeName || p.Spec.NodeName == "" || !p.DeletionTimestamp.IsZero() {
			continue
		}
		if c.Reason == plan.Empty {
			d.fail(emptyMeansEmpty, "node %s is removed as empty, %s runs there", p.Spec.NodeName, p.Name)
		}
		if p.Annotations[karpv1.AnnotationDoNotDisrupt] != "" {
			d.fail(protectionHolds, "node %s is removed, %s forbids it", p.Spec.NodeName, p.Name)
		}
		for _, b := range budgets(&d.process.view.shelves, p) {
			if !lets(b, p) {
				d.fail(pdbsHold, "node %s is removed, PodDisruptionBudget %s keeps %s on it", p.Spec.NodeName, b.Name, p.Name)
			}
		}
	}
}

// evicts checks protectionHolds for an eviction.
func (d *disruptions) evicts(pod *corev1.Pod) {
	seen, _ := d.process.view.of(kindOf(pod)).objects[client.ObjectKeyFromObject(pod)].(*corev1.Pod)
	if seen != nil && seen.UID == pod.UID && seen.Annotations[karpv1.AnnotationDoNotDisrupt] != "" {
		d.fail(protectionHolds, "%s is evicted, it forbids that", pod.Name)
	}
}
