package disruption_test

import (
	"maps"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

// objects returns a fleet of halfUsed as objects of the API.
func (f *fleet) objects() []client.Object {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: f.pools[0].Name, UID: types.UID(f.pools[0].UID)}}
	pool.Spec.Template.Spec.NodeClassRef = world.Class
	onDemand := karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"on-demand"}}
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{onDemand}
	pool.Spec.Disruption = karpv1.Disruption{ConsolidationPolicy: karpv1.ConsolidateWhenEmptyOrUnderutilized,
		ConsolidateAfter: karpv1.DurationOf(0), Budgets: []karpv1.Budget{{Nodes: "100%"}}}
	all := []client.Object{pool}
	for i := range f.nodes {
		all = append(all, claimObject(&f.nodes[i], pool), nodeObject(&f.nodes[i]))
	}
	for i := range f.pods {
		all = append(all, podObject(&f.pods[i]))
	}
	return all
}

func claimObject(n *model.NodeSpec, pool *karpv1.NodePool) *karpv1.NodeClaim {
	owner := metav1.OwnerReference{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID}
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.Claim, UID: types.UID(n.ClaimUID), Labels: labelsOf(n),
		CreationTimestamp: metav1.Time{Time: n.Created}, Finalizers: []string{karpv1.FinalizerTermination},
		OwnerReferences: []metav1.OwnerReference{owner},
		Annotations: map[string]string{karpv1.AnnotationNodePoolHash: pool.Hash(), karpv1.AnnotationNodePoolHashVersion: karpv1.HashVersion,
			karpv1.AnnotationPods: model.JoinPodRefs(n.LaunchedFor)}}}
	c.Spec.NodeClassRef = world.Class
	c.Status = karpv1.NodeClaimStatus{ProviderID: "world:///" + n.Name, NodeName: n.Name, Capacity: listOf(n.Capacity),
		Allocatable: listOf(n.Allocatable)}
	for _, kind := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized, status.ConditionReady} {
		c.Status.Conditions = append(c.Status.Conditions, status.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind,
			LastTransitionTime: metav1.Time{Time: n.InitializedAt}})
	}
	return c
}

func nodeObject(n *model.NodeSpec) *corev1.Node {
	labels := labelsOf(n)
	labels[karpv1.LabelRegistered], labels[karpv1.LabelInitialized] = "true", "true"
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: n.InitializedAt}}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID(n.UID), Labels: labels, CreationTimestamp: metav1.Time{Time: n.Created},
			Finalizers: []string{karpv1.FinalizerTermination}},
		Spec:   corev1.NodeSpec{ProviderID: "world:///" + n.Name},
		Status: corev1.NodeStatus{Capacity: listOf(n.Capacity), Allocatable: listOf(n.Allocatable), Conditions: []corev1.NodeCondition{ready}},
	}
}

func labelsOf(n *model.NodeSpec) map[string]string {
	labels := maps.Clone(n.Labels)
	labels[karpv1.NodeClassLabel(world.Class.Group, world.Class.Kind)] = world.Class.Name
	return labels
}

func podObject(p *model.PodSpec) *corev1.Pod {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: p.Controller.Kind, Name: p.Controller.Name, UID: types.UID(p.Controller.UID),
		Controller: new(true)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: types.UID(p.UID), Labels: p.Labels,
			OwnerReferences:   []metav1.OwnerReference{owner},
			CreationTimestamp: metav1.Time{Time: noon.AddDate(0, 0, -1)}},
		Spec: corev1.PodSpec{NodeName: p.Node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: noon.AddDate(0, 0, -1)}},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: noon.AddDate(0, 0, -1)}}}},
	}
	requests := listOf(p.Requests)
	delete(requests, "pods")
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}
	for _, s := range p.Spread {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{TopologyKey: s.Key,
			MaxSkew: int32(s.MaxSkew), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}})
	}
	return pod
}

func amountsOf(list []quantity.Amount) map[string]int64 {
	amounts := map[string]int64{}
	for _, a := range list {
		amounts[a.Name] += a.Value
	}
	return amounts
}

func listOf(list []quantity.Amount) corev1.ResourceList { return cloud.ResourceList(amountsOf(list)) }

// typesOf returns the types of a catalog as a provider does.
func typesOf(c *model.Catalog) []cloud.InstanceType {
	var all []cloud.InstanceType
	for i := range c.Types {
		from := &c.Types[i]
		t := cloud.InstanceType{Name: from.Name, Capacity: amountsOf(from.Capacity), Overhead: amountsOf(from.Capacity)}
		for name, amount := range amountsOf(from.Allocatable) {
			t.Overhead[name] -= amount
		}
		for _, r := range from.Requirements {
			t.Requirements = append(t.Requirements, cloud.Requirement{Key: r.Key, Operator: "In", Values: r.Values})
		}
		for _, o := range from.Offerings {
			t.Offerings = append(t.Offerings, cloud.Offering{Zone: o.Zone, CapacityType: o.CapacityType, Price: float64(o.Price) / model.Nano,
				Available: o.Available})
		}
		all = append(all, t)
	}
	return all
}
