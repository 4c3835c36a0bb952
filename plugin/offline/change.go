package offline

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/billing"
	"github.com/karpenter-go/karpenter/plugin/podusage"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Change is a hypothetical change of what was read. The zero value changes nothing.
type Change struct {
	// Pools are the manifests of NodePools, YAML documents or JSON, in place of those of their names or new; empty for none.
	Pools string
	// Spot and Prices are factors of spot prices and of all prices; 0 means 1.
	Spot, Prices float64
	// Zone is a zone without offerings and without its nodes; empty for none.
	Zone string
	// Pods is the number of pods to add, 0 for none: each with these requests as the API spells quantities, or like those of
	// a workload, NAMESPACE/KIND/NAME as Workloads returns it.
	Pods              int
	CPU, Memory, Like string
	// SpotToSpot allows replacing spot nodes by spot nodes.
	SpotToSpot bool

	// withoutPDB is the NAMESPACE/NAME of a PodDisruptionBudget to leave out. unprotected are pods and nodes, by key,
	// whose protecting annotations to leave out.
	withoutPDB  string
	unprotected map[string]bool
	// pools changes a copy of each pool, nil for none.
	pools func(*karpv1.NodePool)
	// rightSized sets the requests of each workload's pods to what fits their usage. DaemonSets keep theirs.
	rightSized bool
}

// mostAdded is the maximum number of pods that a change adds.
const mostAdded = 20_000

// With returns what was read with the change. The receiver is unchanged, and both share all other changed.
func (o *Manifests) With(c *Change) (*Manifests, error) {
	changed := *o
	changed.Problems, changed.seen, changed.told = nil, map[string]string{}, false
	changed.pools, changed.refused = slices.Clone(o.pools), slices.Clone(o.refused)
	for _, factor := range []float64{c.Spot, c.Prices} {
		if !(factor >= 0 && factor <= 1000) {
			return nil, inputErrorf("the factor is %v, want 0 to 1000", factor)
		}
	}
	if c.pools != nil {
		for i := range changed.pools {
			changed.pools[i].object = changed.pools[i].object.DeepCopy()
			c.pools(changed.pools[i].object)
		}
	}
	if err := changed.replacePools(c.Pools); err != nil {
		return nil, err
	}
	if c.withoutPDB != "" {
		changed.budgets = slices.DeleteFunc(slices.Clone(o.budgets),
			func(b sourced[*policyv1.PodDisruptionBudget]) bool { return key(b.object) == c.withoutPDB })
	}
	if len(c.unprotected) > 0 {
		changed.unprotect(c.unprotected)
	}
	if c.rightSized {
		changed.rightSize()
	}
	if err := changed.addPods(c); err != nil {
		return nil, err
	}
	changed.sale = c.sale(changed.sale)
	if c.Pools != "" {
		changed.claims = slices.Clone(changed.claims)
		changed.applyDrift(o)
	}
	return &changed, nil
}

// unprotect leaves out the annotations that protect these pods and nodes, and the claims of the nodes.
func (o *objects) unprotect(names map[string]bool) {
	protecting := []string{karpv1.AnnotationDoNotDisrupt, karpv1.AnnotationDoNotEvict, karpv1.AnnotationDoNotConsolidate,
		karpv1.AnnotationSafeToEvict, karpv1.AnnotationScaleDownDisabled}
	bare := func(annotations map[string]string) map[string]string {
		rest := maps.Clone(annotations)
		maps.DeleteFunc(rest, func(key, _ string) bool { return slices.Contains(protecting, key) })
		return rest
	}
	machines := o.machinesOf()
	o.pods, o.nodes, o.claims = slices.Clone(o.pods), slices.Clone(o.nodes), slices.Clone(o.claims)
	for i, p := range o.pods {
		if names[key(p.object)] {
			pod := *p.object
			pod.Annotations = bare(pod.Annotations)
			o.pods[i].object = &pod
		}
	}
	for i, n := range o.nodes {
		if names[n.object.Name] {
			node := *n.object
			node.Annotations = bare(node.Annotations)
			o.nodes[i].object = &node
		}
	}
	for i, c := range o.claims {
		m := machines[c.object.Status.ProviderID]
		if m != nil && m.Node() != nil && names[m.Node().Name] || names[c.object.Name] {
			claim := *c.object
			claim.Annotations = bare(claim.Annotations)
			o.claims[i].object = &claim
		}
	}
}

// rightSize sets the requests of the pods whose usage is known.
func (o *objects) rightSize() {
	pods := make([]*corev1.Pod, len(o.pods))
	for i, p := range o.pods {
		pods[i] = p.object
	}
	sized, changed := o.usage.RightSize(pods, func(p *corev1.Pod) string {
		switch {
		case ownedByNode(p), karpv1.EndedPod(p):
			return ""
		case workloadNameOf(p) == "":
			return key(p)
		}
		return workloadNameOf(p)
	})
	o.pods = slices.Clone(o.pods)
	for i := range o.pods {
		o.pods[i].object = sized[i]
	}
	o.templates = nil // new pods have the same requests
	o.rightSized = changed
}

// addPods adds the pods of the change, unschedulable so far.
func (o *objects) addPods(c *Change) error {
	if c.Pods == 0 {
		return nil
	}
	if c.Pods < 0 || c.Pods > mostAdded {
		return inputErrorf("pods to add: %d, want 1 to %d", c.Pods, mostAdded)
	}
	of, err := o.patternOf(c)
	if err != nil {
		return err
	}
	o.pods = slices.Clone(o.pods)
	for i := range c.Pods {
		pod := *of
		pod.Name = "what-if-" + strconv.Itoa(i)
		pod.UID = types.UID(pod.Name) // without a time of creation, so that no delay of pods applies
		assumeUnschedulable(&pod)
		o.pods = append(o.pods, sourced[*corev1.Pod]{&pod, "the change", false})
	}
	return nil
}

// patternOf returns the pod that is added, without a name: a pod of the workload that it shall be like, or a plain one.
func (o *objects) patternOf(c *Change) (*corev1.Pod, error) {
	if c.Like != "" {
		return o.podLike(c)
	}
	requests := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: c.CPU, corev1.ResourceMemory: c.Memory} {
		if text == "" {
			continue
		}
		q, err := karpv1.ParseQuantity(text)
		if err != nil || q.Sign() < 0 {
			return nil, inputErrorf("the request of %s is %q, want a quantity such as 500m or 1Gi", name, text)
		}
		requests[name] = q
	}
	controller := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": "what-if"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: appsVersion, Kind: "ReplicaSet", Name: "what-if",
			UID: "what-if", Controller: &controller}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none",
			Resources: corev1.ResourceRequirements{Requests: requests}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}, nil
}

// podLike returns a further replica of a workload: what its pods say, without a node and without the claims of volumes,
// which belong to one pod.
func (o *objects) podLike(c *Change) (*corev1.Pod, error) {
	if c.CPU != "" || c.Memory != "" {
		return nil, inputErrorf("pods like %s, and requests of cpu or memory: give one of them", c.Like)
	}
	at := slices.IndexFunc(o.pods, func(p sourced[*corev1.Pod]) bool {
		return !karpv1.EndedPod(p.object) && workloadNameOf(p.object) == c.Like
	})
	if at < 0 {
		return nil, inputErrorf("there is no pod of %s, want NAMESPACE/KIND/NAME of a workload that has pods, such as shop/Deployment/web",
			c.Like)
	}
	like := o.pods[at].object
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: like.Namespace, Labels: like.Labels, Annotations: like.Annotations,
		OwnerReferences: like.OwnerReferences}, Spec: *like.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}}
	pod.Spec.NodeName = ""
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
	return pod, nil
}

// workloadNameOf returns the workload of a pod as NAMESPACE/KIND/NAME, "" for a pod without one and for those of nodes.
func workloadNameOf(pod *corev1.Pod) string {
	of, owned := ownerOf(pod)
	if !owned || ownedByNode(pod) {
		return ""
	}
	top := model.Owner{Kind: of.kind, Name: of.name}.Workload(pod.Labels, pod.CreationTimestamp.Time)
	return of.namespace + "/" + top.Kind + "/" + top.Name
}

// sale returns the offerings with the prices of the change, and without those of its zone.
func (c *Change) sale(s *capture.PriceList) *capture.PriceList {
	if c.Spot == 0 && c.Prices == 0 && c.Zone == "" {
		return s
	}
	factor := func(v float64) float64 {
		if v == 0 {
			return 1
		}
		return v
	}
	list := *s
	list.Catalogs = slices.Clone(s.Catalogs)
	for i := range list.Catalogs {
		list.Catalogs[i].Types = slices.Clone(list.Catalogs[i].Types)
		for t := range list.Catalogs[i].Types {
			offerings := slices.Clone(list.Catalogs[i].Types[t].Offerings)
			for j := range offerings {
				offer(&offerings[j], c, factor)
			}
			list.Catalogs[i].Types[t].Offerings = offerings
		}
	}
	return &list
}

func offer(o *cloud.Offering, c *Change, factor func(float64) float64) {
	if o.Price *= factor(c.Prices); o.CapacityType == karpv1.CapacityTypeSpot {
		o.Price *= factor(c.Spot)
	}
	if o.Zone == c.Zone {
		o.Available = false
	}
}

// WhatIf is a plan with a change beside the one without it.
type WhatIf struct {
	// Without and With are the plans until no further step is worthwhile, pending pods included.
	Without, With *view.Plan
	// Warnings are what the figures do not show, such as a pool that can launch nothing with the change.
	Warnings []string
	// Cost is that of the changed fleet at rest.
	Cost view.Cost
}

// Steps is the number of steps of both plans.
func (w *WhatIf) Steps() int {
	n := 0
	for _, p := range []*view.Plan{w.Without, w.With} {
		if p != nil {
			n += len(p.Steps)
		}
	}
	return n
}

// changed returns the overview of what was read with the change.
func (o *Overview) changed(c *Change) (*Overview, error) {
	o.converting.Lock()
	defer o.converting.Unlock()
	w, err := o.w.With(c)
	if err != nil {
		return nil, err
	}
	policy := o.policy
	if c.SpotToSpot {
		policy.FeatureGates = strings.TrimPrefix(policy.FeatureGates+",SpotToSpotConsolidation=true", ",")
	}
	return w.Overview(&policy), nil
}

// WhatIf plans with and without the change. It ends early with the context. tell is given the plans so far, With nil before
// that one has begun; nil for nothing.
func (o *Overview) WhatIf(ctx context.Context, c *Change, tell func(*WhatIf)) (*WhatIf, error) {
	if tell == nil {
		tell = func(*WhatIf) {}
	}
	other, err := o.changed(c)
	if err != nil {
		return nil, err
	}
	answer := &WhatIf{}
	answer.Without, err = o.Plan(ctx, func(p *view.Plan) { tell(&WhatIf{Without: p}) })
	if err != nil {
		return nil, err
	}
	if c.Zone != "" {
		var gone []string
		for _, n := range other.snap.Nodes {
			if n.Labels[model.LabelZone] == c.Zone && n.Ours() {
				gone = append(gone, n.Name)
			}
		}
		other.lost, other.lostBy = gone, "Zone lost"
	}
	answer.With, err = other.Plan(ctx, func(p *view.Plan) { tell(&WhatIf{Without: answer.Without, With: p}) })
	if err != nil {
		return nil, err
	}
	answer.Warnings, _ = warnings(o, other)
	answer.Cost = other.costOf(other.rest)
	return answer, nil
}

// RightSized returns what the fleet at rest would cost with the requests that fit the usage of pods; nil if no usage is
// known. It ends early with the context.
func (o *Overview) RightSized(ctx context.Context) (*bill.RightSized, error) {
	if len(o.w.usage) == 0 {
		return nil, nil
	}
	other, err := o.changed(&Change{rightSized: true})
	if err != nil {
		return nil, err
	}
	without, err := o.Plan(ctx, nil)
	if err != nil {
		return nil, err
	}
	with, err := other.Plan(ctx, nil)
	if err != nil {
		return nil, err
	}
	by := bill.Grouping{By: bill.ByNamespace} // the sum is the same by any
	atRest, fit := billing.Of(o.rest, by, nil).PerHour, billing.Of(other.rest, by, nil).PerHour
	saving := atRest - fit
	return &bill.RightSized{Pods: other.w.rightSized, Percent: podusage.Percent, AtRest: atRest, Fit: fit, Saving: saving,
		SavingPerMonth: saving.PerMonth(), Unschedulable: with.Homeless, UnschedulableNow: without.Homeless}, nil
}

// lose records the loss of nodes as a step.
func (r *planRecorder) lose(names []string, reason string) {
	r.d.last = r.d.last.Without(names...)
	r.plan.Append(view.Step{Reason: reason, Remove: names, Price: figuresFor(r.d.figures(r.d.last)).Price})
}
