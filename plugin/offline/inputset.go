package offline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// InputSet holds all objects of a decision. Their conversion is part of every round of --repeat, and does not change
// them.
type InputSet struct {
	*Manifests
	classes []schema.GroupKind
	// defaultSpread is that of the scheduler configuration.
	defaultSpread []corev1.TopologySpreadConstraint
	podRules      convert.PodRules
	now           time.Time
	// nodeOf is the node of a claim, by provider ID.
	nodeOf map[string]*corev1.Node
	// aside are the DaemonSets that the last decision did not consider.
	aside []model.AsideDaemon
}

// converted is the result of converting the objects: the builder's input, and the objects that could not be converted.
type converted struct {
	builder *model.Builder
	// idle are pods that wait for something other than a node.
	idle     []idlePod
	problems []error
	// overlays say what the NodeOverlays do, resolved for pools; nil without any.
	overlays []OverlayOutcome
	resolved *overlay.Outcome
	pools    []overlay.Pool
	// requests are what the buffers ask for.
	requests []*room.Request
	// invalidQuotas are the CapacityQuotas without effect.
	invalidQuotas []invalidQuota
}

// idlePod is a pod that needs no node from Karpenter, and why.
type idlePod struct {
	pod string
	why plan.Verdict
}

// typesOn reads the available types if neither a capture nor a cluster contains them: from a file of instance types,
// that of a folder, or the embedded types of the kwok provider. Labels that only a folder's meta.json names are
// absent on all types.
func (o *Manifests) typesOn(path string) error {
	if o.sale != nil && path == "" {
		return nil
	}
	path = cmp.Or(path, o.typesFile)
	types, labels := kwok.EmbeddedTypes()
	if path != "" {
		var err error
		if types, labels, err = readTypes(path); err != nil {
			return err
		}
	}
	for _, label := range o.providerLabels {
		if slices.Contains(labels, label) {
			continue
		}
		labels = append(labels, label)
		for i := range types {
			types[i].Requirements = append(slices.Clip(types[i].Requirements), cloud.Requirement{Key: label, Operator: "DoesNotExist"})
		}
	}
	o.ofFile = true
	o.sale = &PriceList{Declared: cloud.Declared{WellKnown: labels, ReservationKey: kwok.ReservationKey(types)},
		Catalogs: []priceListEntry{{Types: types}}}
	return nil
}

func readTypes(path string) ([]cloud.InstanceType, []string, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, nil, inputErrorf("reading instance types: %w", err)
	}
	types, labels, err := kwok.ReadInstanceTypes(bytes.NewReader(data), path)
	if err != nil {
		return nil, nil, inputErrorf("%w", err)
	}
	return types, labels, nil
}

// prepare validates the pools once, and computes what the rounds need.
func (w *InputSet) prepare() {
	if w.classes = w.sale.NodeClasses; len(w.classes) == 0 {
		w.classes = w.nodeClasses()
	}
	rules := convert.NewVocabulary(w.sale.Declared, w.classes...).Rules
	w.pools = slices.DeleteFunc(w.pools, func(p sourced[*karpv1.NodePool]) bool {
		errs := karpv1.Validate(p.object, rules)
		if len(errs) == 0 || p.live {
			return false
		}
		w.problem(fmt.Errorf("%s: %w", p.origin, errs[0]))
		w.refusePool(p.object.Name, errs[0])
		return true
	})
	w.joinMachines()
	if w.ofFile {
		w.useReservations()
	}
	for _, n := range w.nodes {
		w.around.hosts[n.object.Labels[corev1.LabelHostname]] = true
	}
}

// useReservations reduces the reservations of a file of instance types by the machines that have their label, and ends
// those whose time is over, as the provider of such files does.
func (w *InputSet) useReservations() {
	used, seen := map[string]int{}, map[*corev1.Node]bool{}
	for _, c := range w.claims {
		if node := w.nodeOf[c.object.Status.ProviderID]; node != nil {
			seen[node] = true
		}
		used[c.object.Labels[kwok.LabelReservation]]++
	}
	for _, n := range w.nodes {
		if !seen[n.object] {
			used[n.object.Labels[kwok.LabelReservation]]++
		}
	}
	for i := range w.sale.Catalogs {
		c := &w.sale.Catalogs[i]
		c.Types = kwok.WithUse(c.Types, used, w.now)
	}
}

// nodeClasses returns the kinds of node class that the pools reference; all of them are accepted here.
func (w *InputSet) nodeClasses() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, pool := range w.pools {
		ref := pool.object.Spec.Template.Spec.NodeClassRef
		if kind := (schema.GroupKind{Group: ref.Group, Kind: ref.Kind}); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Empty reports whether there is nothing to decide about.
func (w *InputSet) Empty() bool {
	return len(w.pools)+len(w.pods)+len(w.nodes)+len(w.claims)+len(w.daemons)+len(w.workloads)+len(w.buffers.objects) == 0
}

// convert converts all objects and adds them to a new builder.
func (w *InputSet) convert() *converted {
	t := &converted{builder: model.NewBuilder()}
	t.builder.Expect(len(w.pods))
	v := convert.NewVocabulary(w.sale.Declared, w.classes...)
	v.Pods = w.podRules
	around := w.around.around(w.defaultSpread)
	w.addPools(t, v)
	w.addQuotas(t, v)
	running := &convert.DaemonPods{}
	for _, p := range w.pods {
		running.Add(p.object)
	}
	for _, set := range w.daemons {
		t.builder.UpsertDaemon(convert.Daemon(set.object, v, around, running))
	}
	for _, b := range w.budgets {
		t.builder.UpsertPDB(convert.PDB(b.object))
	}
	w.addNodes(t, v)
	owners := w.owners()
	for _, p := range w.pods {
		spec, disposition := convert.Pod(p.object, v, around)
		owners.succeed(p, &spec)
		if why := w.forbidden(p); why != nil {
			t.idle = append(t.idle, idlePod{key(p.object), plan.Verdict{Code: plan.PodInvalid, Rejection: why}})
		} else if why := w.excluded(p.object, disposition); why != "" {
			verdict := plan.Verdict{Code: plan.PodWaiting, Rejection: &model.Rejection{Reason: why}}
			t.idle = append(t.idle, idlePod{key(p.object), verdict})
		} else if disposition != convert.Ignore {
			t.builder.UpsertPod(spec)
		} else if why, idle := w.around.idleness(p.object); idle {
			t.idle = append(t.idle, idlePod{key(p.object), why})
		}
	}
	w.addBuffers(t, v, around)
	return t
}

// poolStock is what a pool can launch, or why nothing.
type poolStock struct {
	*model.Catalog
	why   string
	types []cloud.InstanceType
	own   *convert.Vocabulary
}

func (t *converted) catalog(types []cloud.InstanceType, v *convert.Vocabulary) *model.Catalog {
	catalog, wrong := convert.Catalog(types, v)
	for _, r := range wrong {
		t.problems = append(t.problems, fmt.Errorf("instance types: %s: %s", r.Field, r.Reason))
	}
	return catalog
}

func (w *InputSet) addPools(t *converted, v *convert.Vocabulary) {
	var common, none poolStock
	named, classes := map[string]poolStock{}, map[string]poolStock{}
	for i := range w.sale.Catalogs {
		c := &w.sale.Catalogs[i]
		s := poolStock{why: cmp.Or(c.Reason, "there are no instance types")}
		if c.Reason == "" {
			s.types, s.own = c.Types, v
			if c.Declared != nil {
				s.own = convert.NewVocabulary(*c.Declared, w.classes...)
			}
			s.Catalog = t.catalog(c.Types, s.own)
			t.builder.OfferPrices(s.Catalog)
		}
		for _, pool := range c.Pools {
			named[pool] = s
		}
		switch {
		case c.Class != "":
			classes[c.Class] = s
		case len(c.Pools) == 0:
			common = s
		}
	}
	stocks, overlaid := make([]poolStock, len(w.pools)), make([]overlay.Pool, len(w.pools))
	for i := range w.pools {
		pool := w.pools[i].object
		s, known := named[pool.Name]
		if ref := classOf(pool); !known && ref.Group == awsv1.Group && len(classes) > 0 {
			if s, known = classes[ref.Name]; !known {
				s, known = none, true
				s.why = fmt.Sprintf("%s %s is not among those of the capture", ref.Kind, ref.Name)
			}
		}
		if !known {
			s = common
		}
		stocks[i] = s
		overlaid[i] = overlay.Pool{Name: pool.Name, Labels: pool.Spec.Template.ObjectMeta.Labels, Types: s.types}
	}
	w.resolve(t, overlaid, v)
	changed := map[*cloud.InstanceType]*model.Catalog{}
	for i := range w.pools {
		pool, s := w.pools[i].object, stocks[i]
		spec := convert.Pool(pool, v)
		spec.Budgets, spec.BudgetError = convert.Budgets(pool, w.now)
		if types := t.overlaid(overlaid[i]); len(types) > 0 && &types[0] != &s.types[0] {
			if changed[&types[0]] == nil {
				changed[&types[0]] = t.catalog(types, s.own)
			}
			s.Catalog = changed[&types[0]]
		}
		convert.AddCatalog(&spec, s.Catalog, s.why)
		t.builder.UpsertPool(spec)
	}
	for _, r := range w.refused {
		t.builder.UpsertPool(r.spec())
	}
}

// addNodes adds what stands for each machine, as the controller does.
func (w *InputSet) addNodes(t *converted, v *convert.Vocabulary) {
	machines, origins, taken := w.machines()
	beside := convert.Beside{
		CSINode: func(node string) *storagev1.CSINode { return w.around.csiNodes[node] },
		Taken:   func(name string) bool { return taken[name] },
	}
	for _, m := range machines {
		specs, refused := m.Represent(v, beside)
		for _, r := range refused {
			t.problems = append(t.problems, fmt.Errorf("%s: %s: %s", origins[r.Object], r.Why.Field, r.Why.Reason))
		}
		for _, spec := range specs {
			t.builder.UpsertNode(spec)
		}
	}
}

// excluded returns why the rules about pods exclude a pending pod, "" if they do not.
func (w *InputSet) excluded(pod *corev1.Pod, disposition convert.Disposition) string {
	from := w.podRules.PlannedFrom(pod)
	switch {
	case waiting(pod) && pod.DeletionTimestamp == nil && !ownedByNode(pod) && w.podRules.Expendable(pod):
		return fmt.Sprintf("its priority is below %d (--expendable-pods-priority-cutoff): no node is launched for it", *w.podRules.PriorityCutoff)
	case disposition == convert.Pending && from.After(w.now):
		return "no node is launched for it before " + from.UTC().Format(time.RFC3339)
	}
	return ""
}

// idleness returns what a pod waits for that is neither on a node nor finished, and that needs no node from
// Karpenter.
func (s *surroundings) idleness(pod *corev1.Pod) (plan.Verdict, bool) {
	if !waiting(pod) {
		return plan.Verdict{}, false
	}
	because := func(field, format string, arguments ...any) (plan.Verdict, bool) {
		return plan.Verdict{Code: plan.PodWaiting, Rejection: &model.Rejection{Field: field, Reason: fmt.Sprintf(format, arguments...)}}, true
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return because("metadata.deletionTimestamp", "the pod is being deleted")
	case len(pod.Spec.SchedulingGates) > 0:
		return because("spec.schedulingGates", "the pod has scheduling gates: %s", pod.Spec.SchedulingGates[0].Name)
	case pod.Status.NominatedNodeName != "" && !convert.NominatedByUs(pod):
		if claim := s.unbound(pod); claim != "" {
			return because("status.nominatedNodeName",
				"kube-scheduler has chosen node %s for it and waits for PersistentVolumeClaim %s, which is not bound yet",
				pod.Status.NominatedNodeName, claim)
		}
		return because("status.nominatedNodeName", "kube-scheduler has chosen node %s for it: preempted pods have to terminate there first, or the pod is being bound", pod.Status.NominatedNodeName)
	case ownedByNode(pod):
		return because("metadata.ownerReferences", "the pod belongs to a DaemonSet or to a node: no other node can run it")
	case pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		return because("spec.schedulerName", "scheduler %s has not reported it as unschedulable", pod.Spec.SchedulerName)
	}
	return because("status.conditions[PodScheduled]", "kube-scheduler has not reported it as unschedulable")
}

func ownedByNode(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" || o.Kind == "DaemonSet" })
}
