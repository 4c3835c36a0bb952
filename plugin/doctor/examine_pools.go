package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// limits returns findings about pools whose nodes use up a limit while pods are unschedulable. Without such pods, that is
// no problem. Whether an instance type of the pool still fits is for explain pool to say, which knows them.
func limits(f *Facts, _ Options) []cloud.Finding {
	pods := f.unschedulable()
	if len(pods) == 0 {
		return nil
	}
	var list []cloud.Finding
	for i := range f.Pools {
		pool := &f.Pools[i]
		if reached := f.limitsReached(pool); reached != "" && pool.DeletionTimestamp == nil {
			list = append(list, found(PoolAtLimit, "nodepool/"+pool.Name,
				fmt.Sprintf("its nodes use %s, and %s unschedulable: %s", reached, are(len(pods), "pod"), few(pods)),
				fmt.Sprintf("kubectl karpenter explain pool %[1]s shows whether a further node fits, and explain pods -A which pods wait for it; "+
					"to increase spec.limits: kubectl edit nodepool %[1]s", pool.Name)))
		}
	}
	return list
}

func are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// unschedulable returns the pods that kube-scheduler has reported as unschedulable for a while.
func (f *Facts) unschedulable() []string {
	var list []string
	for i := range f.Waiting {
		pod := &f.Waiting[i]
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
				f.at().Sub(c.LastTransitionTime.Time) > time.Minute
		}) {
			list = append(list, pod.Namespace+"/"+pod.Name)
		}
	}
	return list
}

// limitsReached returns the limits of the pool that leave less than each of its nodes has, "" for none.
func (f *Facts) limitsReached(pool *karpv1.NodePool) string {
	var reached []string
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		limit, used := pool.Spec.Limits[name], pool.Status.Resources[name]
		left := limit.DeepCopy()
		if left.Sub(used); left.Sign() < 0 {
			left = resource.Quantity{}
		}
		if least := f.leastNode(pool.Name, name); least.Cmp(left) > 0 {
			reached = append(reached, fmt.Sprintf("%s of the limit of %s %s", used.String(), limit.String(), name))
		}
	}
	return strings.Join(reached, ", ")
}

// leastNode returns the least capacity of a node of the pool. Without nodes it returns the least that any node has, which
// is none of an extended resource.
func (f *Facts) leastNode(pool string, name corev1.ResourceName) resource.Quantity {
	var least resource.Quantity
	some := false
	for i := range f.Claims {
		c := &f.Claims[i]
		if amount := c.Status.Capacity[name]; c.Labels[karpv1.LabelNodePool] == pool && len(c.Status.Capacity) > 0 &&
			(!some || amount.Cmp(least) < 0) {
			least, some = amount, true
		}
	}
	switch {
	case name == karpv1.ResourceNodes:
		return resource.MustParse("1")
	case !some && !strings.Contains(string(name), "/"):
		return resource.MustParse("1m")
	}
	return least.DeepCopy()
}

// orphans returns findings about claims whose pool does not exist.
func orphans(f *Facts, _ Options) []cloud.Finding {
	if f.couldNot("NodePool") {
		return nil
	}
	byPool := map[string][]string{}
	for i := range f.Claims {
		claim := &f.Claims[i]
		name := claim.Labels[karpv1.LabelNodePool]
		if claim.DeletionTimestamp != nil || slices.ContainsFunc(f.Pools, func(p karpv1.NodePool) bool { return p.Name == name }) {
			continue
		}
		byPool[name] = append(byPool[name], claim.Name)
	}
	const until = "until they are deleted or expire, and are not consolidated or replaced"
	var list []cloud.Finding
	for _, pool := range slices.Sorted(maps.Keys(byPool)) {
		claims := byPool[pool]
		if pool == "" {
			list = append(list, found(PoolMissing, "nodeclaim/"+claims[0],
				fmt.Sprintf("NodeClaims without a NodePool run %s: %s", until, few(claims)),
				"kubectl delete nodeclaim "+strings.Join(claims, " ")+" drains and terminates them; a NodePool launches other nodes for their pods"))
			continue
		}
		list = append(list, found(PoolMissing, "nodepool/"+pool,
			fmt.Sprintf("the NodePool does not exist, and its NodeClaims run %s: %s", until, few(claims)),
			fmt.Sprintf("create NodePool %[1]s again, to which they then belong; "+
				"or kubectl delete nodeclaim -l %[2]s=%[1]s drains and terminates them", pool, karpv1.LabelNodePool)))
	}
	return list
}

// budgets returns findings about budgets that cannot be read, so that no node of the pool is disrupted.
func budgets(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Pools {
		pool := &f.Pools[i]
		for k := range pool.Spec.Disruption.Budgets {
			b := &pool.Spec.Disruption.Budgets[k]
			_, err := b.Active(f.at())
			if _, amount := b.Allowed(0); errors.Join(amount, err) != nil {
				list = append(list, found(BudgetUnreadable, "nodepool/"+pool.Name,
					fmt.Sprintf("no node of the NodePool is disrupted: spec.disruption.budgets[%d]: %v", k, cmp.Or(amount, err)),
					"kubectl edit nodepool "+pool.Name))
			}
		}
	}
	return list
}
