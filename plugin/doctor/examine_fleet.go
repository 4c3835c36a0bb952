package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// owns reports whether the class is of one of the provider's kinds. Other classes are not examined.
func (f *Facts) owns(ref karpv1.NodeClassReference) bool {
	return slices.Contains(f.Owned, schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
}

func (f *Facts) class(ref karpv1.NodeClassReference) *Class {
	for i := range f.Classes {
		if c := &f.Classes[i]; c.Kind.Group == ref.Group && c.Kind.Kind == ref.Kind && c.Name == ref.Name {
			return c
		}
	}
	return nil
}

// pools returns findings about pools from which no node can be launched: their class is missing, or their conditions
// report a problem.
func pools(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Pools {
		pool := &f.Pools[i]
		ref := pool.Spec.Template.Spec.NodeClassRef
		object := "nodepool/" + pool.Name
		conditions := conditionsOf(pool.Status.Conditions)
		if c := firstNotTrue(conditions, karpv1.ConditionNodeClassReady); c != nil && c.Reason == karpv1.ReasonOtherProvider && pool.DeletionTimestamp == nil {
			list = append(list, found(OtherProvider, object, "the NodePool launches no nodes: "+c.Message,
				"also run a controller of the provider of the NodePool (--cloud-provider), with its own Lease (--leader-election-namespace); "+
					"or run kubectl delete nodepool "+pool.Name))
			continue
		}
		if !f.owns(ref) || pool.DeletionTimestamp != nil {
			continue
		}
		if f.class(ref) == nil && !f.couldNot(ref.Kind) {
			fix := fmt.Sprintf("create the %s, or set another one in spec.template.spec.nodeClassRef: kubectl edit nodepool %s", ref.Kind, pool.Name)
			if from := madeFrom(pool); from != "" {
				fix = f.missingFrom(from, ref)
			}
			list = append(list, found(ClassMissing, object, fmt.Sprintf("the node class of the NodePool, %s %s, does not exist", ref.Kind, ref.Name), fix))
			continue
		}
		if worst := firstNotTrue(conditions, "Ready"); worst != nil {
			if cause := firstNotTrue(conditions, karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady); cause != nil {
				worst = cause
			}
			list = append(list, found(PoolNotReady, object, "the NodePool launches no nodes: "+worst.text(), "kubectl describe nodepool "+pool.Name+"; fix the problem in the condition"+keptAs(madeFrom(pool))))
		}
	}
	return list
}

// standing returns findings about pools with a fixed number of nodes that no controller of their provider maintains.
func standing(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Pools {
		pool := &f.Pools[i]
		var off []string
		kept := false
		for k := range f.Controllers {
			c := &f.Controllers[k]
			if c.Provider() != ProviderOf(pool.Spec.Template.Spec.NodeClassRef.Group) {
				continue
			}
			if on, known := c.gate("StaticCapacity"); on || !known {
				kept = true
			} else {
				off = append(off, c.object())
			}
		}
		if pool.Static() && pool.DeletionTimestamp == nil && !kept && len(off) > 0 {
			list = append(list, found(StaticCapacityOff, "nodepool/"+pool.Name, fmt.Sprintf("the number of %d replicas is not maintained, because the feature gate StaticCapacity of %s is disabled", *pool.Spec.Replicas, few(off)),
				"enable it (chart: settings.featureGates.staticCapacity=true; FEATURE_GATES=StaticCapacity=true), or remove spec.replicas from the NodePool"))
		}
	}
	return list
}

// missingFrom returns the fix for a missing class of a pool that was created from an older object.
func (f *Facts) missingFrom(from string, ref karpv1.NodeClassReference) string {
	fix := "the NodePool is created from " + from + ", which reverts edits: kubectl describe " + from
	if slices.ContainsFunc(f.Templates, func(t awsv1alpha1.AWSNodeTemplate) bool { return t.Name == ref.Name }) {
		fix += "; kubectl describe awsnodetemplate " + ref.Name + ", from which the node class is created"
	}
	return fix + "; or create the " + ref.Kind
}

// firstNotTrue returns the first condition of these types that is present and not true.
func firstNotTrue(conditions []Condition, types ...string) *Condition {
	for _, kind := range types {
		for i := range conditions {
			if c := &conditions[i]; c.Type == kind && c.Status != string(metav1.ConditionTrue) {
				return c
			}
		}
	}
	return nil
}

func (c *Condition) text() string {
	return strings.TrimSuffix(fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message), ": ")
}

func classes(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Classes {
		class := &f.Classes[i]
		ready := firstNotTrue(class.Conditions, "Ready")
		object := strings.ToLower(class.Kind.Kind) + "/" + class.Name
		if class.Deleting != nil || ready == nil {
			continue
		}
		var causes []string
		for k := range class.Conditions {
			if c := &class.Conditions[k]; c.Status == string(metav1.ConditionFalse) && c.Type != "Ready" {
				causes = append(causes, c.text())
			}
		}
		if len(causes) == 0 {
			causes = []string{ready.text()}
		}
		list = append(list, found(ClassNotReady, object, strings.Join(causes, "; "), "kubectl describe "+strings.ToLower(class.Kind.Kind)+"."+class.Kind.Group+" "+class.Name+"; fix the problems in the conditions"+keptAs(class.MadeFrom)))
	}
	return list
}

// claims returns findings about claims that take longer than expected.
func claims(f *Facts, o Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Claims {
		claim := &f.Claims[i]
		if !f.owns(claim.Spec.NodeClassRef) {
			continue
		}
		object := "nodeclaim/" + claim.Name
		describe := "kubectl describe nodeclaim " + claim.Name
		if at := claim.DeletionTimestamp; at != nil {
			if late := f.at().Sub(at.Time); late > o.Patience {
				fix := describe
				if claim.Status.NodeName != "" {
					fix += "; kubectl describe node " + claim.Status.NodeName + " shows the reason if its drain is blocked"
				}
				list = append(list, found(ClaimNotTerminated, object, fmt.Sprintf("the NodeClaim was deleted %s ago and still exists%s",
					round(late), f.waitingFor(claim)), fix))
			}
			continue
		}
		conditions := conditionsOf(claim.Status.Conditions)
		code, missing, since := launchStage(conditions, claim.CreationTimestamp.Time)
		if late := f.at().Sub(since); code != "" && late > o.Patience {
			why := ""
			if c := firstNotTrue(conditions, missing); c != nil {
				why = ": " + c.text()
			}
			list = append(list, found(code, object, fmt.Sprintf("the NodeClaim is not %s after %s%s", strings.ToLower(missing), round(late), why), describe+fixes[code]))
		}
	}
	return list
}

var fixes = map[string]string{
	ClaimNotLaunched: "; the condition contains the response of the cloud",
	ClaimNotRegistered: "; the instance has not joined the cluster: check its console output, its user data, " +
		"the permission of its role to join the cluster, and its connection to the API server",
	ClaimNotInitialized: "; the node is not ready, has a startup taint, or lacks a resource (a device plugin)",
}

// launchStage returns what a claim waits for, and since when.
func launchStage(conditions []Condition, created time.Time) (code, missing string, since time.Time) {
	since = created
	for _, step := range []struct{ kind, code string }{
		{karpv1.ConditionLaunched, ClaimNotLaunched}, {karpv1.ConditionRegistered, ClaimNotRegistered}, {karpv1.ConditionInitialized, ClaimNotInitialized},
	} {
		at := slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == step.kind && c.Status == string(metav1.ConditionTrue) })
		if at < 0 {
			return step.code, step.kind, since
		}
		since = conditions[at].Since
	}
	return "", "", since
}

func (f *Facts) waitingFor(claim *karpv1.NodeClaim) string {
	if c := firstNotTrue(conditionsOf(claim.Status.Conditions), karpv1.ConditionDrained, karpv1.ConditionVolumesDetached, karpv1.ConditionInstanceTerminating); c != nil {
		return fmt.Sprintf(": for %s %s", round(f.at().Sub(c.Since)), c.text())
	}
	return ""
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }

// finalizers returns findings about nodes with the termination finalizer and without a claim: no controller removes
// it.
func finalizers(f *Facts, _ Options) []cloud.Finding {
	if f.couldNot("NodeClaim") {
		return nil
	}
	claimed := map[string]bool{}
	for i := range f.Claims {
		claimed[f.Claims[i].Status.ProviderID] = true
	}
	var list []cloud.Finding
	for i := range f.Nodes {
		node := &f.Nodes[i]
		at := slices.Index(node.Finalizers, karpv1.FinalizerTermination)
		if at < 0 || node.Spec.ProviderID != "" && claimed[node.Spec.ProviderID] || slices.ContainsFunc(f.Claims, func(c karpv1.NodeClaim) bool { return behind(&c, node) }) {
			continue
		}
		what := "the node has the finalizer " + karpv1.FinalizerTermination + " and no NodeClaim"
		if node.DeletionTimestamp != nil {
			what += "; the deletion of the node cannot finish"
		}
		list = append(list, found(FinalizerOrphaned, "node/"+node.Name, what,
			"verify that its instance does not exist, then run kubectl patch node "+node.Name+" --type=json -p '"+withoutFinalizer(at,
				karpv1.FinalizerTermination)+"'"))
	}
	return list
}

// behind reports whether the claim belongs to the node, regardless of its provider ID, which may have been edited, or
// may be missing because the status of the claim cannot be written.
func behind(claim *karpv1.NodeClaim, node *corev1.Node) bool {
	return karpv1.OwnsNode(claim, node) || claim.Status.NodeName == node.Name || claim.Name == node.Name
}

// mismatched returns findings about claims that are set aside because they name a machine that is not that of their
// node.
func mismatched(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Claims {
		claim := &f.Claims[i]
		id := claim.Status.ProviderID
		if !f.owns(claim.Spec.NodeClassRef) {
			continue
		}
		at := slices.IndexFunc(f.Nodes, func(node corev1.Node) bool {
			return karpv1.OwnsNode(claim, &node) && node.Spec.ProviderID != "" && node.Spec.ProviderID != id
		})
		if at < 0 {
			continue
		}
		node := &f.Nodes[at]
		object, describe := "nodeclaim/"+claim.Name, "kubectl describe nodeclaim "+claim.Name
		if id == "" {
			list = append(list, found(ClaimMismatched, object, fmt.Sprintf("its status contains no instance, and its node %s has the instance %s; the status probably cannot be written", node.Name, node.Spec.ProviderID),
				describe+"; the event StatusNotWritten shows what rejects the status"))
			continue
		}
		list = append(list, found(ClaimMismatched, object, fmt.Sprintf("the NodeClaim is set aside, because its status contains the instance %s, and its node %s has the instance %s", id, node.Name, node.Spec.ProviderID),
			fmt.Sprintf(`kubectl patch nodeclaim %s --subresource=status --type=merge -p '{"status":{"providerID":"%s"}}'`, claim.Name, node.Spec.ProviderID)))
	}
	return list
}

// withoutFinalizer returns a patch that removes the finalizer ours at the index at, and keeps those of others. It
// fails if the finalizer is no longer there.
func withoutFinalizer(at int, ours string) string {
	return fmt.Sprintf(`[{"op":"test","path":"/metadata/finalizers/%d","value":"%s"},{"op":"remove","path":"/metadata/finalizers/%d"}]`, at, ours, at)
}

// drains returns findings about drains that a PodDisruptionBudget or the annotation do-not-disrupt blocks for
// longer than expected.
func drains(f *Facts, o Options) []cloud.Finding {
	leaving := f.leaving()
	blocked, protected := map[string][]string{}, map[string][]string{} // pods by budget, and by node
	f.draining = map[string][]string{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		since, leaves := leaving[pod.Spec.NodeName]
		if !leaves || f.at().Sub(since) <= o.Patience || pod.DeletionTimestamp != nil || karpv1.DaemonPod(pod) || karpv1.MirrorPod(pod) || staying(pod) {
			continue
		}
		if p, _ := karpv1.ProtectionOf(pod); p.Holds(f.at()) {
			protected[pod.Spec.NodeName] = append(protected[pod.Spec.NodeName], pod.Namespace+"/"+pod.Name)
			continue
		}
		for k := range f.PDBs {
			if pdb := &f.PDBs[k]; pdb.Namespace == pod.Namespace && pdb.Status.DisruptionsAllowed <= 0 && selects(pdb, pod) && !regardless(pdb, pod) {
				key := pdb.Namespace + "/" + pdb.Name
				blocked[key] = append(blocked[key], pod.Name+" on "+pod.Spec.NodeName)
				f.draining[key] = append(f.draining[key], pod.Spec.NodeName)
			}
		}
	}
	var list []cloud.Finding
	for name, pods := range blocked {
		slices.Sort(pods)
		namespace, budget, _ := strings.Cut(name, "/")
		list = append(list, found(DrainBlocked, "poddisruptionbudget/"+name, fmt.Sprintf("the budget allows no eviction, and the drain of nodes waits for %s", few(pods)),
			fmt.Sprintf("increase the number of healthy pods of the workload, or relax the budget: kubectl -n %[1]s edit poddisruptionbudget %[2]s; "+
				"or delete the pods: kubectl -n %[1]s delete pod %[3]s", namespace, budget, strings.Join(podNames(pods), " "))+f.nextTime(f.draining[name])))
	}
	for node, pods := range protected {
		f.draining["node/"+node] = []string{node}
		list = append(list, found(DrainBlocked, "node/"+node,
			"the drain waits for pods with the annotation "+karpv1.AnnotationDoNotDisrupt+": "+few(pods),
			"delete the pods, or remove their annotation"+f.nextTime([]string{node})))
	}
	return list
}

// podNames returns the names of the first pods of a list of "NAME on NODE".
func podNames(pods []string) []string {
	var names []string
	for _, pod := range pods[:min(len(pods), mostNames)] {
		name, _, _ := strings.Cut(pod, " ")
		names = append(names, name)
	}
	return names
}

// nextTime names the setting that limits the drains of the next nodes of these nodes' pools. NodeClaims copy it when they
// are created, so it does not change drains in progress. It returns "" if the pools do not exist.
func (f *Facts) nextTime(nodes []string) string {
	var list []string
	for i := range f.Claims {
		pool := f.Claims[i].Labels[karpv1.LabelNodePool]
		if slices.Contains(nodes, f.Claims[i].Status.NodeName) && !slices.Contains(list, pool) &&
			slices.ContainsFunc(f.Pools, func(p karpv1.NodePool) bool { return p.Name == pool }) {
			list = append(list, pool)
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return "; spec.template.spec.terminationGracePeriod of the NodePool " + few(list) + " limits the drains of nodes that are launched after it is set"
}

// staying reports whether a pod tolerates the taint of nodes that are being removed: drains do not wait for it.
func staying(pod *corev1.Pod) bool {
	taint := karpv1.DisruptedTaint()
	return slices.ContainsFunc(pod.Spec.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), &taint, false)
	})
}

// regardless reports whether the API server evicts the pod regardless of the budget: a pod that is not ready, if the
// budget always allows that, or has as many healthy pods as it requires.
func regardless(pdb *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if ready {
		return false
	}
	if policy := pdb.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return pdb.Status.DesiredHealthy > 0 && pdb.Status.CurrentHealthy >= pdb.Status.DesiredHealthy
}

// leaving returns the managed nodes that are being drained, and since when.
func (f *Facts) leaving() map[string]time.Time {
	leaving := map[string]time.Time{}
	for i := range f.Nodes {
		if n := &f.Nodes[i]; n.DeletionTimestamp != nil && slices.Contains(n.Finalizers, karpv1.FinalizerTermination) {
			leaving[n.Name] = n.DeletionTimestamp.Time
		}
	}
	for i := range f.Claims {
		c := &f.Claims[i]
		if c.DeletionTimestamp == nil {
			continue
		}
		if since, known := leaving[c.Status.NodeName]; !known || c.DeletionTimestamp.Time.Before(since) {
			leaving[c.Status.NodeName] = c.DeletionTimestamp.Time
		}
	}
	delete(leaving, "")
	return leaving
}

func selects(pdb *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// mostNames is the number of names in a message.
const mostNames = 3

// few returns the first of many names.
func few(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}
