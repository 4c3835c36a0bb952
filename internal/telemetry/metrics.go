package telemetry

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// namespace is the prefix of metric names.
const namespace = "karpenter"

// These are the values of the label reason of NodeClaimsCreated and NodeClaimsDisrupted.
const (
	CreatedProvisioned = "provisioned"

	DisruptedEmpty                = "empty"
	DisruptedUnderutilized        = "underutilized"
	DisruptedDrifted              = "drifted"
	DisruptedExpired              = "expired"
	DisruptedUnhealthy            = "unhealthy"
	DisruptedInsufficientCapacity = "insufficient_capacity"
	DisruptedNodeClassNotReady    = "nodeclass_not_ready"
	DisruptedLaunchTimeout        = "launch_timeout"
	DisruptedRegistrationTimeout  = "registration_timeout"
	DisruptedGarbageCollected     = "garbage_collected"
)

// These are the values of the label cause of NodeClaimsUnjudged.
const (
	UnjudgedPoolMissing  = "nodepool_missing"
	UnjudgedClassMissing = "nodeclass_missing"
	UnjudgedCatalog      = "catalogue"
	UnjudgedProvider     = "provider"
	UnjudgedHash         = "hash"
)

// Metrics holds all metrics of the controller. The comment of each lists its labels in order. Durations are in
// seconds. Those marked "not upstream" do not exist in upstream Karpenter.
type Metrics struct {
	build *prometheus.GaugeVec

	// NodeClaimsCreated counts created claims. Labels: reason (provisioned or a disruption reason), nodepool,
	// min_values_relaxed (true or false).
	NodeClaimsCreated *prometheus.CounterVec
	// NodeClaimsTerminated counts claims whose finalizer was removed. Labels: nodepool, capacity_type, zone.
	NodeClaimsTerminated *prometheus.CounterVec
	// NodeClaimsDisrupted counts claims that the controller deleted, see Disrupted. Labels: reason, nodepool,
	// capacity_type, consolidation_policy, termination_mode.
	NodeClaimsDisrupted *prometheus.CounterVec
	// NodeClaimsUnhealthyDisrupted counts claims that were deleted because a condition of their node required it.
	// Labels: condition (snake case), nodepool, capacity_type, image_id.
	NodeClaimsUnhealthyDisrupted *prometheus.CounterVec
	// NodeClaimsUnjudged is the number of claims for which drift cannot be evaluated. Labels: nodepool, cause
	// (Unjudged...). Not upstream.
	NodeClaimsUnjudged *prometheus.GaugeVec
	// NodeClaimsRemovalsPaused is the number of machines whose involuntary removal is paused, including those in
	// dispute while removals are paused. NodeClaimsDisputed is the number of machines that the cloud cannot find
	// although their nodes report. Label: nodepool, empty for machines without one. Not upstream.
	NodeClaimsRemovalsPaused *prometheus.GaugeVec
	NodeClaimsDisputed       *prometheus.GaugeVec
	// NodeClaimsTermination is the time from a claim's deletion to its removal. Label: nodepool.
	NodeClaimsTermination *prometheus.HistogramVec
	// NodeClaimsInstanceTermination is the time from the first accepted request to terminate the machine until it was
	// gone. Label: nodepool.
	NodeClaimsInstanceTermination *prometheus.HistogramVec
	// NodesCreated counts nodes that registered. Labels: nodepool, zone.
	NodesCreated *prometheus.CounterVec
	// NodesTerminated counts nodes whose finalizer was removed. Labels: nodepool, zone.
	NodesTerminated *prometheus.CounterVec
	// NodesDrained counts nodes whose drain finished. Label: nodepool.
	NodesDrained *prometheus.CounterVec
	// NodesTermination is the time from a node's deletion to its removal. Label: nodepool.
	NodesTermination *prometheus.SummaryVec
	// NodesLifetime is the age of nodes at their removal. Label: nodepool.
	NodesLifetime *prometheus.HistogramVec

	// NodePoolsLimit and NodePoolsUsage are spec.limits and status.resources, in cores, bytes or units. Labels:
	// resource_type, nodepool.
	NodePoolsLimit *prometheus.GaugeVec
	NodePoolsUsage *prometheus.GaugeVec
	// NodePoolsAllowedDisruptions is how many nodes may be disrupted now. Labels: nodepool, reason (CamelCase).
	NodePoolsAllowedDisruptions *prometheus.GaugeVec
	// NodePoolsConsumingBudgets is how many nodes are not ready, being deleted or being disrupted. Labels: nodepool,
	// reason (CamelCase). The value is the same for every reason.
	NodePoolsConsumingBudgets *prometheus.GaugeVec
	// NodePoolsPaused is how much is paused after failures (package pause). Labels: nodepool, reason (CamelCase). Not
	// upstream.
	NodePoolsPaused *prometheus.GaugeVec

	// PodsStartup is the time from a pod's creation until it runs.
	PodsStartup prometheus.Summary
	// PodsBound is the time from a pod's creation until it is bound.
	PodsBound prometheus.Histogram
	// PodsSchedulingDecision is the time from when a pod was first seen pending until the first decision about it.
	PodsSchedulingDecision prometheus.Histogram
	// PodsProvisioningBound and PodsProvisioningStartup are the times from the first plan for a pod until it was
	// bound, and until it ran.
	PodsProvisioningBound   prometheus.Histogram
	PodsProvisioningStartup prometheus.Histogram
	// Waits records when pods were first planned.
	Waits *Waits
	// PodsEvictionRequests counts responses to eviction requests. Label: code (HTTP status; 200 on success).
	PodsEvictionRequests *prometheus.CounterVec
	// PodsDrained counts pods that were evicted or deleted in a drain. Label: reason.
	PodsDrained *prometheus.CounterVec
	// PodsDisruptionInitiated counts the pods that have to move because a command, or the controller for another reason (expired,
	// unhealthy, garbage_collected), has deleted the claim of their node. Labels: those of NodeClaimsDisrupted.
	PodsDisruptionInitiated *prometheus.CounterVec

	// SchedulingDuration is the duration of one scheduling pass. Label: controller.
	SchedulingDuration *prometheus.HistogramVec
	// SchedulerQueueDepth is the number of pods in the current pass. Label: controller. (Upstream Karpenter has a
	// second label, the ID of the pass, and so a series for every pass.)
	SchedulerQueueDepth *prometheus.GaugeVec
	// SchedulerIgnoredPods is the number of pods that are not considered.
	SchedulerIgnoredPods prometheus.Gauge
	// BufferCost is the part of the nodes' prices that the room of a CapacityBuffer is, in USD per hour: of each node, the
	// larger of the room's shares of its cpu and memory. Labels: namespace, name. Not upstream.
	BufferCost *prometheus.GaugeVec
	// SchedulerUnschedulablePods is the number of pods that were unschedulable in the last pass. Label: controller.
	SchedulerUnschedulablePods *prometheus.GaugeVec

	// SchedulerPendingByZone is the number of pods of the last pass by the zone in which they must be placed. Labels:
	// controller, zone (its name, flexible if several are possible, none if none is).
	SchedulerPendingByZone *prometheus.GaugeVec
	// Passes holds the scheduling passes in progress.
	Passes *Passes
	// Traces sends spans, nil for none. It is set before the first use.
	Traces *Traces

	// DisruptionDecisions counts commands. Labels: decision (delete or replace), reason, consolidation_type.
	DisruptionDecisions *prometheus.CounterVec
	// DisruptionDecisionsByPool counts commands for each pool whose nodes they remove. Labels: nodepool, decision,
	// reason, consolidation_type.
	DisruptionDecisionsByPool *prometheus.CounterVec
	// DisruptionEvaluation is the duration of one evaluation. Labels: reason, consolidation_type.
	DisruptionEvaluation *prometheus.HistogramVec
	// DisruptionEligibleNodes is the number of candidates. Label: reason.
	DisruptionEligibleNodes *prometheus.GaugeVec
	// DisruptionFailedValidations counts commands that were dropped because they were no longer safe. Label:
	// consolidation_type.
	DisruptionFailedValidations *prometheus.CounterVec
	// DisruptionQueueFailures counts commands that were rolled back. Labels: decision, reason, consolidation_type.
	DisruptionQueueFailures *prometheus.CounterVec
	// ConsolidationTimeouts counts evaluations that timed out. Label: consolidation_type. It is always 0, because
	// every node is evaluated. It exists for dashboards.
	ConsolidationTimeouts *prometheus.CounterVec
	// DisruptionKeptNodes is the number of nodes that are kept, and why. Labels: nodepool, reason (for which they
	// could be removed), code (docs/simulate.md). Not upstream.
	DisruptionKeptNodes *prometheus.GaugeVec
	// VoluntaryDisruptionPaused is 1 while the controller begins no voluntary disruption. Label: reason. Not upstream.
	VoluntaryDisruptionPaused *prometheus.GaugeVec
	// ConsolidationScore is the ratio of the share of a pool's cost that a consolidation saves to the share of its
	// eviction cost that it causes. Labels: decision (approved, rejected), nodepool, policy (snake case).
	ConsolidationScore *prometheus.HistogramVec
	// ConsolidationMoves counts consolidations by the pools whose nodes they remove. Labels: decision, nodepool,
	// policy.
	ConsolidationMoves *prometheus.CounterVec

	// ClusterCostBound is the lower bound of the cost of any set of nodes for the pods on managed nodes, in USD per
	// hour. ClusterCostBoundTime is when it was computed, in seconds since 1970. The actual cost is
	// Objects.ClusterCost. Not upstream.
	ClusterCostBound, ClusterCostBoundTime prometheus.Gauge

	// ClusterStateNodes is the number of nodes in the mirror.
	ClusterStateNodes prometheus.Gauge
	// ClusterStateSynced is 1 when the mirror is complete, otherwise 0.
	ClusterStateSynced prometheus.Gauge
	// ClusterStateRejected is the number of objects that are set aside because they cannot be interpreted. Label:
	// kind. Not upstream.
	ClusterStateRejected *prometheus.GaugeVec
	// CapacityQuotasUsage and CapacityQuotasLimit are status.used and spec.limits, in cores, bytes, USD per hour or units.
	// Labels: capacityquota, resource_type.
	CapacityQuotasUsage *prometheus.GaugeVec
	CapacityQuotasLimit *prometheus.GaugeVec
	// NodeOverlaysApplied is the number of instance types that a NodeOverlay changes. Labels: nodeoverlay, effect
	// (price or capacity). Not upstream.
	NodeOverlaysApplied *prometheus.GaugeVec

	// ClockAhead is how far the controller's clock is ahead of the API server's, negative if it is behind. It is set
	// when it changes by more than five seconds. Not upstream.
	ClockAhead prometheus.Gauge

	// LeaderRefusedWrites counts writes that were refused because the Lease had expired. Label: method, an HTTP
	// method of the Kubernetes API, or Launch or Terminate. Not upstream.
	LeaderRefusedWrites *prometheus.CounterVec

	// CloudDuration is the duration of calls to the provider. Labels: controller, method, provider.
	CloudDuration *prometheus.HistogramVec
	// CloudErrors counts failed calls to the provider. Labels: controller, method, provider, error.
	CloudErrors *prometheus.CounterVec
	// CloudLeakedMachines counts machines that belonged to no claim and were terminated. Label: provider. Not
	// upstream.
	CloudLeakedMachines *prometheus.CounterVec

	requests *requests
}

// New creates all metrics and registers them. It panics when one of them is registered already, which is a
// programming error: a registry has one Metrics.
func New(registerer prometheus.Registerer) *Metrics {
	var list []Metric
	return newMetrics(factory{registerer, &list})
}

func newMetrics(f factory) *Metrics {
	m := &Metrics{build: f.gauge("", "build_info", "Always 1. The labels say what is running.", "version", "goversion", "goarch", "commit")}
	m.Running("")
	f.nodeClaims(m)
	f.nodes(m)
	f.pools(m)
	f.pods(m)
	f.scheduler(m)
	f.disruption(m)
	f.state(m)
	f.cloud(m)
	m.Passes, m.Waits, m.requests = newPasses(f), NewWaits(), newRequests(f)
	return m
}

func (f factory) nodeClaims(m *Metrics) {
	const s = "nodeclaims"
	m.NodeClaimsCreated = f.counter(s, "created_total", "NodeClaims created.", "reason", "nodepool", "min_values_relaxed")
	m.NodeClaimsTerminated = f.counter(s, "terminated_total", "NodeClaims that terminated.", "nodepool", "capacity_type", "zone")
	m.NodeClaimsDisrupted = f.counter(s, "disrupted_total", "NodeClaims deleted by the controller.", "reason", "nodepool",
		"capacity_type", "consolidation_policy", "termination_mode")
	m.NodeClaimsUnhealthyDisrupted = f.counter(s, "unhealthy_disrupted_total",
		"NodeClaims deleted by the controller because their node was unhealthy.",
		"condition", "nodepool", "capacity_type", "image_id")
	m.NodeClaimsRemovalsPaused = f.gauge(s, "removals_paused",
		"Machines whose involuntary removal is paused because too many were requested, and machines in dispute during the pause.", "nodepool")
	m.NodeClaimsDisputed = f.gauge(s, "disputed", "NodeClaims whose machine the cloud cannot find though the node reports.", "nodepool")
	m.NodeClaimsUnjudged = f.gauge(s, "unjudged", "NodeClaims for which it is unknown whether they have drifted.", "nodepool", "cause")
	m.NodeClaimsTermination = f.histogram(s, "termination_duration_seconds", "Time from the deletion of a NodeClaim until it is gone.",
		prometheus.ExponentialBuckets(1, 2, 12), "nodepool")
	m.NodeClaimsInstanceTermination = f.histogram(s, "instance_termination_duration_seconds",
		"Time that the cloud takes to terminate a machine.",
		prometheus.ExponentialBuckets(1, 2, 11), "nodepool")
}

func (f factory) nodes(m *Metrics) {
	const s = "nodes"
	m.NodesCreated = f.counter(s, "created_total", "Nodes that registered.", "nodepool", "zone")
	m.NodesTerminated = f.counter(s, "terminated_total", "Nodes that terminated.", "nodepool", "zone")
	m.NodesDrained = f.counter(s, "drained_total", "Nodes drained.", "nodepool")
	m.NodesTermination = f.summary(s, "termination_duration_seconds", "Time from the deletion of a Node until it is gone.", "nodepool")
	m.NodesLifetime = f.histogram(s, "lifetime_duration_seconds", "Age of Nodes when they terminate.", lifetimeBuckets(), "nodepool")
}

func (f factory) pools(m *Metrics) {
	const s = "nodepools"
	m.NodePoolsLimit = f.gauge(s, "limit", "spec.limits of a NodePool.", "resource_type", "nodepool")
	m.NodePoolsUsage = f.gauge(s, "usage", "Resources of the nodes of a NodePool.", "resource_type", "nodepool")
	m.NodePoolsAllowedDisruptions = f.gauge(s, "allowed_disruptions", "Nodes that the budgets allow to disrupt now.", "nodepool", "reason")
	m.NodePoolsConsumingBudgets = f.gauge(s, "nodes_consuming_budgets",
		"Nodes that count against the budgets: not ready, deleting or being disrupted.", "nodepool", "reason")
	m.NodePoolsPaused = f.gauge(s, "paused", "Pauses after repeated failures, by what is paused.", "nodepool", "reason")
}

func (f factory) pods(m *Metrics) {
	const s = "pods"
	m.PodsStartup = f.summary(s, "startup_duration_seconds",
		"Time from the creation of a pod until it runs.").WithLabelValues().(prometheus.Summary)
	m.PodsBound = f.histogram(s, "bound_duration_seconds", "Time from the creation of a pod until it is bound.",
		DurationBuckets()).WithLabelValues().(prometheus.Histogram)
	m.PodsSchedulingDecision = f.histogram(s, "scheduling_decision_duration_seconds",
		"Time from seeing a pending pod until the first decision about it.",
		DurationBuckets()).WithLabelValues().(prometheus.Histogram)
	m.PodsProvisioningBound = f.histogram(s, "provisioning_bound_duration_seconds",
		"Time from when a pod was first planned until it is bound.",
		DurationBuckets()).WithLabelValues().(prometheus.Histogram)
	m.PodsProvisioningStartup = f.histogram(s, "provisioning_startup_duration_seconds",
		"Time from when a pod was first planned until it runs.",
		DurationBuckets()).WithLabelValues().(prometheus.Histogram)
	m.PodsEvictionRequests = f.counter(s, "eviction_requests_total", "Eviction requests by HTTP status.", "code")
	m.PodsDisruptionInitiated = f.counter(s, "disruption_initiated_total",
		"Pods, other than those of DaemonSets, on nodes whose NodeClaim a disruption, expiration, repair or garbage collection deleted.",
		"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")
	m.PodsDrained = f.counter(s, "drained_total", "Pods removed from nodes that are being removed.", "reason")
}

func (f factory) scheduler(m *Metrics) {
	const s = "scheduler"
	m.SchedulingDuration = f.histogram(s, "scheduling_duration_seconds", "Time of one scheduling pass.", DurationBuckets(), "controller")
	m.SchedulerQueueDepth = f.gauge(s, "queue_depth", "Pods waiting to be planned.", "controller")
	m.BufferCost = f.gauge("capacitybuffers", "cost", "Cost of the room of a CapacityBuffer, in USD per hour.", "namespace", "name")
	m.SchedulerIgnoredPods = f.gauge(s, "ignored_pods_count", "Pending pods that cannot be considered.").WithLabelValues()
	m.SchedulerUnschedulablePods = f.gauge(s, "unschedulable_pods_count", "Pods that are unschedulable in the last pass.", "controller")
	m.SchedulerPendingByZone = f.gauge(s, "pending_pods_by_effective_zone_count",
		"Pods of the last pass by the zone that they require: flexible for several, none where no zone is possible.",
		"controller", "zone")
}

func (f factory) disruption(m *Metrics) {
	const s = "voluntary_disruption"
	m.DisruptionDecisions = f.counter(s, "decisions_total", "Disruption commands.", "decision", "reason", "consolidation_type")
	m.DisruptionDecisionsByPool = f.counter(s, "decisions_by_nodepool_total", "Disruption commands by the pools whose nodes they remove.",
		"nodepool", "decision", "reason", "consolidation_type")
	m.DisruptionEvaluation = f.histogram(s, "decision_evaluation_duration_seconds", "Time of one disruption evaluation.",
		DurationBuckets(), "reason", "consolidation_type")
	m.DisruptionEligibleNodes = f.gauge(s, "eligible_nodes", "Nodes that could be disrupted.", "reason")
	m.DisruptionFailedValidations = f.counter(s, "failed_validations_total",
		"Commands that were no longer safe when they were about to start.",
		"consolidation_type")
	m.DisruptionQueueFailures = f.counter(s, "queue_failures_total", "Commands rolled back.", "decision", "reason", "consolidation_type")
	m.ConsolidationTimeouts = f.counter(s, "consolidation_timeouts_total", "Consolidation evaluations cut short.", "consolidation_type")
	for _, method := range []string{"multi", "single"} {
		m.ConsolidationTimeouts.WithLabelValues(method)
	}
	m.DisruptionKeptNodes = f.gauge(s, "kept_nodes", "Nodes that are not disrupted, by reason.", "nodepool", "reason", "code")
	m.VoluntaryDisruptionPaused = f.gauge(s, "paused", "1 while no voluntary disruption begins, by reason.", "reason")
	m.ConsolidationScore = f.histogram("consolidation", "score", "Part of a pool's cost saved, by part of its eviction cost taken.",
		[]float64{0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10}, "decision", "nodepool", "policy")
	m.ConsolidationMoves = f.counter("consolidation", "moves_total", "Consolidations decided about.", "decision", "nodepool", "policy")
}

func (f factory) state(m *Metrics) {
	m.ClusterCostBound = f.gauge("cluster", "cost_bound",
		"Lower bound of the cost of nodes for the same pods, USD per hour; computed every 5 minutes.").WithLabelValues()
	m.ClusterCostBoundTime = f.gauge("cluster", "cost_bound_timestamp_seconds",
		"When the bound was computed, seconds since 1970.").WithLabelValues()
	const s = "cluster_state"
	m.ClusterStateNodes = f.gauge(s, "node_count", "Nodes mirrored.").WithLabelValues()
	m.ClusterStateSynced = f.gauge(s, "synced", "1 when the mirror of the cluster is complete.").WithLabelValues()
	m.ClockAhead = f.gauge("", "clock_ahead_seconds", "By how much the controller's clock is ahead of the API server's.").WithLabelValues()
	m.LeaderRefusedWrites = f.counter("leader", "refused_writes_total",
		"Writes that were not made because the Lease of the election had expired.", "method")
	m.CapacityQuotasUsage = f.gauge("capacityquotas", "usage", "What the nodes of a CapacityQuota use.", "capacityquota", "resource_type")
	m.CapacityQuotasLimit = f.gauge("capacityquotas", "limit", "spec.limits of a CapacityQuota.", "capacityquota", "resource_type")
	m.NodeOverlaysApplied = f.gauge("nodeoverlays", "applied", "Instance types whose price or capacity a NodeOverlay changes.",
		"nodeoverlay", "effect")
	m.ClusterStateRejected = f.gauge(s, "rejected_objects", "Objects that are set aside because they are invalid.", "kind")
}

func (f factory) cloud(m *Metrics) {
	const s = "cloudprovider"
	m.CloudDuration = f.histogram(s, "duration_seconds", "Time of calls to the cloud provider.", prometheus.DefBuckets,
		"controller", "method", "provider")
	m.CloudErrors = f.counter(s, "errors_total", "Failed calls to the cloud provider.", "controller", "method", "provider", "error")
	m.CloudLeakedMachines = f.counter(s, "leaked_machines_terminated_total", "Machines without a NodeClaim that were terminated.", "provider")
}

// DurationBuckets returns the 45 buckets, in seconds, of durations from 5 ms to 10 min.
func DurationBuckets() []float64 {
	return []float64{
		0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
		1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
	}
}

// lifetimeBuckets returns the buckets, in seconds, of node ages from 15 min to 30 days.
func lifetimeBuckets() []float64 {
	const minute, hour, day = 60.0, 3600.0, 86400.0
	return []float64{
		15 * minute, 30 * minute, 45 * minute, hour, 2 * hour, 4 * hour, 6 * hour, 8 * hour, 10 * hour, 12 * hour,
		16 * hour, 20 * hour, day, 2 * day, 3 * day, 5 * day, 10 * day, 15 * day, 20 * day, 25 * day, 30 * day,
	}
}

// Running exports the running version, in the format of VersionOf.
func (m *Metrics) Running(version string) {
	commit := ""
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	m.build.Reset()
	m.build.WithLabelValues(VersionOf(version), runtime.Version(), runtime.GOARCH, commit).Set(1)
}

// VersionOf returns the version that the linker set, or that of the module, or "unspecified" if there is none.
func VersionOf(linked string) string {
	if b, ok := debug.ReadBuildInfo(); linked == "" && ok {
		linked = b.Main.Version
	}
	return cmp.Or(linked, "unspecified")
}
