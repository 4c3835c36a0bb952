package world

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/cloud"
)

// kube simulates kube-scheduler and the kubelets, from the Kubernetes documentation. kube-scheduler filters by
// resources, taints, node affinity, hard topology spread and required pod (anti-)affinity, scores by NodeResourcesFit
// (LeastAllocated) and NodeResourcesBalancedAllocation, and breaks ties at random, here by a hash of the seed.
type kube struct {
	world *World
	hosts map[string]*host
	// waiting holds the pods without a node, in the order of their creation. dirty says that one may find a node now.
	waiting []*corev1.Pod
	dirty   bool
}

// host is a node in the view of kube-scheduler.
type host struct {
	*corev1.Node

	room, used map[string]int64
	pods       []*placed
}

// placed is a pod with its requests.
type placed struct {
	*corev1.Pod

	requests map[string]int64
}

func requestsOf(pod *corev1.Pod) map[string]int64 {
	sum := map[string]int64{"pods": 1}
	for i := range pod.Spec.Containers {
		for name, amount := range cloud.Amounts(pod.Spec.Containers[i].Resources.Requests) {
			sum[name] += amount
		}
	}
	return sum
}

// saw is called with each change of the API.
func (k *kube) saw(before, after client.Object) {
	switch o := cmp.Or[any](after, before).(type) {
	case *corev1.Node:
		k.sawNode(o, after == nil)
	case *corev1.Pod:
		k.sawPod(before, after)
	}
}

func (k *kube) sawNode(node *corev1.Node, gone bool) {
	h := k.hosts[node.Name]
	if gone {
		delete(k.hosts, node.Name)
		for _, p := range slices.Clone(h.pods) { // the pod garbage collector
			k.world.api.remove(p.Pod)
		}
		return
	}
	if h == nil {
		h = &host{used: map[string]int64{}}
		k.hosts[node.Name] = h
	}
	h.Node, h.room = node, cloud.Amounts(node.Status.Allocatable)
	k.dirty = true
}

func (k *kube) sawPod(before, after client.Object) {
	was, _ := before.(*corev1.Pod)
	is, _ := after.(*corev1.Pod)
	same := func(p *corev1.Pod) bool { return p.UID == was.UID }
	if was != nil {
		k.waiting = slices.DeleteFunc(k.waiting, same)
		if h := k.hosts[was.Spec.NodeName]; h != nil {
			h.remove(was)
		}
	}
	if is == nil {
		k.dirty = true
		return
	}
	if h := k.hosts[is.Spec.NodeName]; h != nil {
		h.add(is)
		if !is.DeletionTimestamp.IsZero() && (was == nil || was.DeletionTimestamp.IsZero()) {
			k.world.Clock.in(k.world.config.PodStop, func() { k.stopped(is) })
		}
		return
	}
	k.waiting = append(k.waiting, is)
	k.dirty = true
}

// stopped ends a deleted pod, unless its kubelet is silent.
func (k *kube) stopped(pod *corev1.Pod) {
	h := k.hosts[pod.Spec.NodeName]
	if h == nil {
		return
	}
	if m := k.world.provider.machine(h.Spec.ProviderID); m == nil || m.speaks() {
		k.world.api.remove(pod)
	}
}

func (h *host) add(pod *corev1.Pod) {
	p := &placed{pod, requestsOf(pod)}
	h.pods = append(h.pods, p)
	for name, amount := range p.requests {
		h.used[name] += amount
	}
}

func (h *host) remove(pod *corev1.Pod) {
	h.pods = slices.DeleteFunc(h.pods, func(p *placed) bool {
		if p.UID != pod.UID {
			return false
		}
		for name, amount := range p.requests {
			h.used[name] -= amount
		}
		return true
	})
}

// schedule binds the pods without a node that find one, nominated pods first. The others are unschedulable.
func (k *kube) schedule() {
	k.dirty = false
	queue := slices.Clone(k.waiting)
	slices.SortStableFunc(queue, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(b.Status.NominatedNodeName, a.Status.NominatedNodeName), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	promised := map[string][]*placed{}
	for _, p := range queue {
		if to := p.Status.NominatedNodeName; to != "" {
			promised[to] = append(promised[to], &placed{p, requestsOf(p)})
		}
	}
	hosts := k.sorted()
	for _, p := range queue {
		h := choose(k.world.config.Seed, hosts, &placed{p, requestsOf(p)}, promised)
		if h == nil {
			k.unschedulable(p)
			continue
		}
		at := h.Name
		to := p.Status.NominatedNodeName
		promised[to] = slices.DeleteFunc(promised[to], func(o *placed) bool { return o.UID == p.UID })
		edit(k.world.api, p, func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.NominatedNodeName, p.ManagedFields, p.Status.Phase = at, "", nil, corev1.PodRunning
			k.condition(p, corev1.PodScheduled, corev1.ConditionTrue, "")
			k.condition(p, corev1.PodReady, corev1.ConditionTrue, "")
		})
	}
	k.dirty = false // what was bound makes no room
}

// unschedulable sets the condition of the pod for which there is no node.
func (k *kube) unschedulable(p *corev1.Pod) {
	if len(p.Status.Conditions) == 0 {
		edit(k.world.api, p, func(p *corev1.Pod) {
			k.condition(p, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
		})
	}
}

func (k *kube) condition(p *corev1.Pod, of corev1.PodConditionType, is corev1.ConditionStatus, reason string) {
	p.Status.Conditions = append(slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of }),
		corev1.PodCondition{Type: of, Status: is, Reason: reason, LastTransitionTime: k.world.api.seconds()})
}

func (k *kube) sorted() []*host {
	hosts := make([]*host, 0, len(k.hosts))
	for _, h := range k.hosts {
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b *host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

// choose returns the node to which kube-scheduler binds the pod, nil for none: the nominated node if it passes. Pods
// that are nominated to a node count as if they were bound to it.
func choose(seed uint64, hosts []*host, p *placed, promised map[string][]*placed) *host {
	var best *host
	most, tie := -1.0, uint64(0)
	rules := rulesOf(hosts, p.Pod)
	for _, h := range hosts {
		if !h.takes(p, promised[h.Name]) || !rules.admit(h) {
			continue
		}
		if h.Name == p.Status.NominatedNodeName {
			return h
		}
		score, ticket := h.score(p), draw(seed, string(p.UID), h.Name)
		if score > most || score == most && ticket > tie {
			best, most, tie = h, score, ticket
		}
	}
	return best
}

func draw(seed uint64, words ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = h.Write([]byte(strings.Join(words, "/")))
	return h.Sum64()
}

// takes checks the filters that depend on the node alone.
func (h *host) takes(p *placed, promised []*placed) bool {
	if h.Spec.Unschedulable || !h.DeletionTimestamp.IsZero() {
		return false
	}
	for name, amount := range p.requests {
		need := amount + h.used[name]
		for _, other := range promised {
			if other.UID != p.UID {
				need += other.requests[name]
			}
		}
		if need > h.room[name] {
			return false
		}
	}
	_, refused := helpers.FindMatchingUntoleratedTaint(logr.Discard(), h.Spec.Taints, p.Spec.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, false)
	if refused {
		return false
	}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(p.Pod).Match(h.Node)
	return err == nil && matches
}

// score returns LeastAllocated plus BalancedAllocation, 0 to 200.
func (h *host) score(p *placed) float64 {
	var parts [2]float64
	for i, name := range []string{"cpu", "memory"} {
		parts[i] = min(1, float64(h.used[name]+p.requests[name])/float64(max(1, h.room[name])))
	}
	free := 100 - 50*(parts[0]+parts[1])
	return math.Floor(free) + math.Floor(100*(1-math.Abs(parts[0]-parts[1])/2))
}

// selects reports whether a selector of pods selects the pod.
func selects(selector *metav1.LabelSelector, pod *corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(pod.Labels))
}
