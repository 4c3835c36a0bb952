package telemetry

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Objects holds the metrics that are computed from the current state at each scrape. The collector sends constant
// metrics with these descriptions, so that the series of an object end with it. The labels of each are in the order
// of its constructor below.
type Objects struct {
	// Detail enables series for each pod, claim and offering, and more of them for each node.
	Detail bool
	// WellKnown holds the label keys whose values the metrics of nodes carry, after node_name, phase, managed and,
	// except for NodeLifetime, resource_type.
	WellKnown []string

	NodeAllocatable, NodePodRequests, NodePodLimits, NodeDaemonRequests, NodeDaemonLimits, NodeOverhead *prometheus.Desc
	NodeLifetime                                                                                        *prometheus.Desc
	// ClusterUtilization is requests divided by allocatable of all nodes, in percent. Label: resource_type.
	ClusterUtilization *prometheus.Desc
	// ClusterCost is the current cost of all managed nodes whose price is known, in USD per hour: a node whose pool was
	// deleted has a price as long as another pool offers its instance type. Not in upstream Karpenter.
	ClusterCost *prometheus.Desc
	// PoolCost is the cost of the nodes of a pool, in USD per hour. Label: nodepool.
	PoolCost *prometheus.Desc
	// CommitmentLimit and CommitmentUsed are the limit of a rule of the price file, and what nodes use of it. Labels:
	// commitment, unit (vcpus or usd_per_hour). Not upstream.
	CommitmentLimit *prometheus.Desc
	CommitmentUsed  *prometheus.Desc
	// NamespaceCost is the part of ClusterCost that pods of a namespace request, by kind (allocation.Kind); all series add up
	// to it. LabelCost is the same by the value of a label of pods. Labels: kind, and pod_namespace or value. The label is
	// not called namespace, which Prometheus sets to that of the controller. Not in upstream Karpenter.
	NamespaceCost, LabelCost *prometheus.Desc
	// PoolOldestDrain is how long the oldest drain of a pool's nodes has been waiting for pods, 0 if there is none.
	// Label: nodepool. Not in upstream Karpenter.
	PoolOldestDrain *prometheus.Desc
	// UnsyncedTime is how long the mirror has been incomplete, 0 when it is complete.
	UnsyncedTime *prometheus.Desc
	// PodState is the number of pods with the same labels; with Detail it is 1, because each pod has a series. Labels:
	// PodStateLabels.
	PodState *prometheus.Desc
	// PodOldestUnbound is the age of the oldest pod that has no node and no scheduling gate, in seconds, 0 if there is none.
	// Not in upstream Karpenter.
	PodOldestUnbound *prometheus.Desc
	// The other metrics of pods have the labels name and namespace. Those with Provisioning count from the first plan
	// for the pod.
	PodUnstarted, PodUnbound, PodProvisioningUnstarted, PodProvisioningUnbound *prometheus.Desc
	// OfferingPrice and OfferingAvailable have the labels instance_type, capacity_type, zone. TypeCPU and TypeMemory
	// have the label instance_type.
	OfferingPrice, OfferingAvailable, TypeCPU, TypeMemory *prometheus.Desc

	kinds map[string]*KindSeries
	all   []*prometheus.Desc
}

// Kind is a kind of object whose conditions are measured.
type Kind struct {
	// Name is the part of metric names, such as nodeclaim.
	Name string
	// Labels holds keys of object labels whose values the series carry too.
	Labels []string
	// Bounded means that there are few objects of the kind, so each has its series without Detail.
	Bounded bool
}

// KindSeries holds the metrics about the conditions of one kind.
type KindSeries struct {
	Kind
	// Count is how many objects have a condition with this status: 1 with namespace and name, or their number with
	// both empty. Labels: namespace, name, type, status, reason, then those of the kind.
	Count *prometheus.Desc
	// Current is how long an object has had the condition with this status. It has the same labels.
	Current *prometheus.Desc
	// Terminating is how long an object has been terminating. Labels: namespace, name, then those of the kind.
	Terminating *prometheus.Desc
	// Transitions counts changes of a condition's status. Labels: type, status, reason, then those of the kind.
	Transitions *prometheus.CounterVec
	// Lasted is how long a condition had its previous status. Labels: type, status, then those of the kind.
	Lasted *prometheus.HistogramVec
	// Termination is the time from an object's deletion to its removal. Labels: those of the kind.
	Termination *prometheus.HistogramVec
}

// ObjectOptions configures Objects.
type ObjectOptions struct {
	Kinds []Kind
	// WellKnown holds label keys of nodes.
	WellKnown []string
	Detail    bool
}

// NewObjects creates the metrics and registers the counters. The collector that sends the others registers their
// descriptions.
func NewObjects(registerer prometheus.Registerer, options ObjectOptions) *Objects {
	var list []Metric
	return newObjects(factory{registerer, &list}, options)
}

func newObjects(f factory, options ObjectOptions) *Objects {
	o := &Objects{Detail: options.Detail, WellKnown: distinct(options.WellKnown), kinds: map[string]*KindSeries{}}
	always, detail := describer{f, o, false}, describer{f, o, true}
	always.summary()
	nodes(always, detail, o.WellKnown)
	pods(always, detail)
	detail.offerings()
	for _, kind := range options.Kinds {
		o.kinds[kind.Name] = newKindSeries(f, o, kind)
	}
	return o
}

// Describe sends the descriptions of all metrics that the collector may send.
func (o *Objects) Describe(to chan<- *prometheus.Desc) {
	for _, d := range o.all {
		to <- d
	}
}

// Kind returns the series of a kind, or nil if it is not measured.
func (o *Objects) Kind(name string) *KindSeries { return o.kinds[name] }

// Kinds returns all measured kinds, by name.
func (o *Objects) Kinds() []*KindSeries {
	list := make([]*KindSeries, 0, len(o.kinds))
	for _, k := range o.kinds {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *KindSeries) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// describer creates and records descriptions.
type describer struct {
	factory
	of     *Objects
	detail bool
}

func (d describer) gauge(subsystem, name, help string, labels ...string) *prometheus.Desc {
	full := name
	if subsystem != "" {
		full = prometheus.BuildFQName(namespace, subsystem, name)
	}
	*d.list = append(*d.list, Metric{Name: full, Type: "gauge", Help: help, Labels: labels, Detail: d.detail})
	desc := prometheus.NewDesc(full, help, labels, nil)
	d.of.all = append(d.of.all, desc)
	return desc
}

func (d describer) summary() {
	d.of.ClusterUtilization = d.gauge("cluster", "utilization_percent", "Requests of pods as a percentage of the capacity of all nodes.",
		"resource_type")
	d.of.ClusterCost = d.gauge("cluster", "cost",
		"Cost of the nodes of all NodePools, and of NodeClaims without one at the price of their offering in another NodePool, USD per hour; "+
			"nodes of unknown price are not included.")
	d.of.CommitmentLimit = d.gauge("commitments", "limit", "The limit of a rule of the price file.", "commitment", "unit")
	d.of.CommitmentUsed = d.gauge("commitments", "used", "What nodes use of the limit of a rule of the price file.", "commitment", "unit")
	d.of.PoolCost = d.gauge("nodepools", "cost_total",
		"Cost of the nodes of a NodePool, USD per hour; nodes of unknown price are not included.",
		"nodepool")
	d.of.NamespaceCost = d.gauge("cost", "by_namespace",
		"Cost of the nodes by the namespace of the pods that request them, USD per hour, the 100 largest of each kind, the rest as (other); "+
			"kind is pods, daemons, unused (requested by no pod) or empty (of nodes without pods). The sum is karpenter_cluster_cost.",
		"kind", "pod_namespace")
	d.of.LabelCost = d.gauge("cost", "by_label",
		"With --cost-label, as karpenter_cost_by_namespace by the value of this label of pods; those without it are (none).",
		"kind", "value")
	d.of.PoolOldestDrain = d.gauge("nodepools", "oldest_drain_seconds",
		"For how long the oldest drain of a node of a NodePool has been waiting for pods; 0 if no node is drained.", "nodepool")
	d.of.UnsyncedTime = d.gauge("cluster_state", "unsynced_time_seconds",
		"For how long the mirror of the cluster has not been complete; 0 when it is.")
}

// nodes creates the metrics of nodes. Those that upstream's dashboards read exist always.
func nodes(always, detail describer, wellKnown []string) {
	labels := []string{"node_name", "phase", "managed", "resource_type"}
	lifetime := slices.Clone(labels[:3])
	for _, key := range wellKnown {
		labels, lifetime = append(labels, LabelOf(key)), append(lifetime, LabelOf(key))
	}
	const s = "nodes"
	o := always.of
	o.NodeAllocatable = always.gauge(s, "allocatable", "Resources of a node that pods may use.", labels...)
	o.NodePodRequests = always.gauge(s, "total_pod_requests", "Requests of the pods of a node, including DaemonSet pods.", labels...)
	o.NodeDaemonRequests = always.gauge(s, "total_daemon_requests", "Requests of the DaemonSet pods of a node.", labels...)
	o.NodePodLimits = detail.gauge(s, "total_pod_limits", "Limits of the pods of a node, including DaemonSet pods.", labels...)
	o.NodeDaemonLimits = detail.gauge(s, "total_daemon_limits", "Limits of the DaemonSet pods of a node.", labels...)
	o.NodeOverhead = detail.gauge(s, "system_overhead", "Resources of a node that pods may not use.", labels...)
	o.NodeLifetime = detail.gauge(s, "current_lifetime_seconds", "Age of a node.", lifetime...)
}

// PodStateLabels are the labels of PodState. Those of a single pod and of its node are empty without Detail.
var PodStateLabels = [...]string{"name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type",
	"instance_type", "phase", "ready", "managed"}

func pods(always, d describer) {
	const s = "pods"
	d.of.PodState = always.gauge(s, "state",
		"Pods by their state; without --metrics-detail counted with an empty name, owner and node, with it 1 for each pod.",
		PodStateLabels[:]...)
	d.of.PodOldestUnbound = always.gauge(s, "oldest_unbound_seconds",
		"Age of the oldest pod that is not bound yet and has no scheduling gate; 0 if there is none.")
	d.of.PodUnstarted = d.gauge(s, "unstarted_time_seconds", "Age of a pod that does not run yet.", "name", "namespace")
	d.of.PodUnbound = d.gauge(s, "unbound_time_seconds", "Age of a pod that is not bound yet.", "name", "namespace")
	d.of.PodProvisioningUnstarted = d.gauge(s, "provisioning_unstarted_time_seconds",
		"Time since a pod that does not run yet was first planned.", "name", "namespace")
	d.of.PodProvisioningUnbound = d.gauge(s, "provisioning_unbound_time_seconds",
		"Time since a pod that is not bound yet was first planned.", "name", "namespace")
}

func (d describer) offerings() {
	const s = "cloudprovider"
	d.of.OfferingPrice = d.gauge(s, "instance_type_offering_price_estimate", "Price of an offering, per hour, in the currency of the region.",
		"instance_type", "capacity_type", "zone")
	d.of.OfferingAvailable = d.gauge(s, "instance_type_offering_available", "1 while an offering is available, else 0.",
		"instance_type", "capacity_type", "zone")
	d.of.TypeCPU = d.gauge(s, "instance_type_cpu_cores", "CPU of an instance type, in cores.", "instance_type")
	d.of.TypeMemory = d.gauge(s, "instance_type_memory_bytes", "Memory of an instance type.", "instance_type")
}

func newKindSeries(f factory, o *Objects, kind Kind) *KindSeries {
	s, prefix := &KindSeries{Kind: kind}, "operator_"+kind.Name
	var extra []string
	for _, key := range kind.Labels {
		extra = append(extra, sanitized(key))
	}
	with := func(labels ...string) []string { return append(labels, extra...) }
	always, detail := describer{f, o, false}, describer{f, o, !kind.Bounded}
	s.Count = always.gauge("", prefix+"_status_condition_count",
		"Objects with a condition; without --metrics-detail those of one kind that are many are counted with an empty name.",
		with("namespace", "name", "type", "status", "reason")...)
	s.Current = detail.gauge("", prefix+"_status_condition_current_status_seconds", "For how long an object has had a condition as it is.",
		with("namespace", "name", "type", "status", "reason")...)
	s.Terminating = detail.gauge("", prefix+"_termination_current_time_seconds", "For how long an object has been terminating.",
		with("namespace", "name")...)
	s.Transitions = f.plainCounter(prefix+"_status_condition_transitions_total", "Changes of the status of a condition.",
		with("type", "status", "reason")...)
	s.Lasted = f.plainHistogram(prefix+"_status_condition_transition_seconds", "How long a condition had its previous status.",
		prometheus.ExponentialBuckets(0.5, 2, 15), with("type", "status")...)
	s.Termination = f.plainHistogram(prefix+"_termination_duration_seconds", "Time from the deletion of an object until it is gone.",
		DurationBuckets(), with()...)
	return s
}

// LabelOf returns the name of a node's label in metrics: the part after the slash, in lower case, with _ for -.
func LabelOf(key string) string {
	_, name, found := strings.Cut(key, "/")
	if !found {
		name = key
	}
	return strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// ResourceType returns the name of a resource as the value of the label resource_type, as upstream spells it:
// ephemeral_storage.
func ResourceType(resource string) string {
	return strings.ToLower(strings.ReplaceAll(resource, "-", "_"))
}

// sanitized returns a whole label key as a name in metrics.
func sanitized(key string) string {
	return strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(key)
}

// distinct returns keys without those whose name in metrics equals that of an earlier key.
func distinct(keys []string) []string {
	var list []string
	taken := map[string]bool{"node_name": true, "phase": true, "managed": true, "resource_type": true}
	for _, key := range keys {
		if name := LabelOf(key); !taken[name] {
			taken[name] = true
			list = append(list, key)
		}
	}
	return list
}
