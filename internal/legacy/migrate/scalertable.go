package migrate

import "strings"

// scalerFlag describes one flag of the Cluster Autoscaler.
type scalerFlag struct {
	isSwitch bool   // it may stand without a value
	becomes  string // what it is here
}

// flagOf returns the description of a flag. Flags of the libraries for logs and for the election of a leader are known
// by their prefix.
func flagOf(name string) (scalerFlag, bool) {
	for _, row := range scalerRows {
		for _, prefix := range strings.Fields(row.prefixes) {
			if strings.HasPrefix(name, prefix) {
				return scalerFlag{becomes: row.becomes}, true
			}
		}
	}
	flag, known := scalerFlagTable[name]
	return flag, known
}

// scalerFlagTable contains the flags of scalerRows by name.
var scalerFlagTable = func() map[string]scalerFlag {
	table := map[string]scalerFlag{}
	for _, row := range scalerRows {
		for _, name := range strings.Fields(row.values) {
			table[name] = scalerFlag{becomes: row.becomes}
		}
		for _, name := range strings.Fields(row.switches) {
			table[name] = scalerFlag{isSwitch: true, becomes: row.becomes}
		}
	}
	return table
}()

// scalerRows contains all flags of the Cluster Autoscaler up to version 1.37, and those that older versions had
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca):
// names of flags with a value, of switches, which may stand without one, and prefixes of names.
var scalerRows = []struct{ values, switches, prefixes, becomes string }{
	// Groups and their sizes.
	{values: "nodes", becomes: "the maximum becomes spec.limits.nodes of the group's NodePool"},
	{values: "node-group-auto-discovery",
		becomes: "tags of Auto Scaling groups are not read; each node group in the input becomes a NodePool"},
	{switches: "enforce-node-group-min-size",
		becomes: "a NodePool has no minimum size; a separate NodePool with spec.replicas keeps nodes (feature gate " +
			"StaticCapacity)"},
	{switches: "node-autoprovisioning-enabled",
		becomes: "NodePools are not created automatically; a NodePool can launch any instance type that fits its " +
			"requirements"},
	{values: "max-autoprovisioned-node-group-count",
		switches: "async-node-groups",
		becomes:  "NodePools are not created automatically"},
	{switches: "scale-up-from-zero", becomes: "a NodePool launches nodes whatever the number of its existing nodes"},
	{values: "max-nodes-total", becomes: "a number above 0 becomes the limit nodes of the CapacityQuota " + scalerQuota},
	{values: "cores-total", becomes: "the maximum becomes the limit cpu of the CapacityQuota " + scalerQuota},
	{values: "memory-total", becomes: "the maximum, in GiB, becomes the limit memory of the CapacityQuota " + scalerQuota},
	{values: "gpu-total",
		becomes: "the maxima become limits of the CapacityQuota " + scalerQuota + ", added per vendor; " +
			"a limit per type of GPU needs a quota with a spec.selector for the labels of its nodes"},
	{switches: "capacity-quotas-enabled",
		becomes: "CapacityQuotas are always read, and limit all NodePools that their selector matches"},

	// The choice of a group.
	{values: "expander",
		becomes: "NodePools are tried in the order of spec.weight, and a NodePool launches the cheapest instance type that " +
			"fits; the priorities of the expander priority become weights if its ConfigMap is in the input"},
	{values: "grpc-expander-url grpc-expander-cert",
		becomes: "no external program chooses a NodePool; spec.weight defines the order"},
	{values: "balancing-ignore-label balancing-label memory-difference-ratio max-free-difference-ratio " +
		"max-allocatable-difference-ratio",
		switches: "balance-similar-node-groups",
		becomes: "a NodePool launches nodes in all its zones; topologySpreadConstraints of the pods define how the pods are " +
			"spread"},
	{values: "estimator",
		switches: "fastpath-binpacking-enabled",
		becomes:  "a plan packs all waiting pods at once, and takes the cheapest instance types that hold them"},
	{values: "max-binpacking-time max-nodegroup-binpacking-duration scale-down-simulation-timeout",
		switches: "enable-graceful-degradation",
		becomes:  "settings.workBudget of the chart limits the work for one plan"},
	{values: "max-nodes-per-scaleup",
		becomes: "a plan launches all nodes that its pods need; spec.limits of a NodePool and CapacityQuotas limit them"},
	{values: "salvo-scale-up-budget",
		switches: "parallel-scale-up salvo-scale-up",
		becomes:  "a plan launches nodes of several NodePools at once"},
	{switches: "scaleup-simulation-for-skipped-node-groups-enabled", becomes: "all NodePools are considered in each plan"},
	{switches: "max-node-skip-eval-time-tracker-enabled", becomes: "all nodes are considered in each plan"},
	{values: "initial-node-group-backoff-duration max-node-group-backoff-duration node-group-backoff-reset-timeout",
		becomes: "an offering without capacity is excluded for 3 minutes, separately for each instance type and zone"},
	{values: "node-info-cache-expire-time", becomes: "instance types are read from the cloud, not from existing nodes"},

	// Pods for which nodes are launched.
	{values: "new-pod-scale-up-delay",
		becomes: "settings.newPodDelay of the chart is the same for each pod; the values settings.batchIdleDuration and " +
			"settings.batchMaxDuration of the chart define how long the controller waits for more pods"},
	{values: "expendable-pods-priority-cutoff",
		becomes: "settings.expendablePodsPriorityCutoff of the chart is the same; without it every pod that cannot be " +
			"scheduled counts"},
	{switches: "enable-proactive-scaleup",
		becomes: "settings.proactiveScaleUp of the chart is the same, and on by default: nodes are launched for pods that " +
			"workloads are about to create"},
	{values: "pod-injection-limit",
		becomes: "settings.proactiveScaleUp of the chart plans at most 10000 pods that do not exist yet; the number cannot " +
			"be changed"},
	{switches: "capacity-buffer-controller-enabled capacity-buffer-pod-injection-enabled",
		becomes: "CapacityBuffers are read with settings.featureGates.capacityBuffer: true of the chart"},
	{switches: "capacity-buffer-pod-dry-run-enabled",
		becomes: "CapacityBuffers are read with settings.featureGates.capacityBuffer: true of the chart; a buffer is not " +
			"tried by the API server"},
	{switches: "capacity-buffer-ready-replicas-enabled",
		becomes: "CapacityBuffers are read with settings.featureGates.capacityBuffer: true of the chart; " +
			"status.readyReplicas is always written"},
	{values: "bypassed-scheduler-names",
		becomes: "pods count when their scheduler marks them as unschedulable, whichever scheduler it is"},
	{values: "scheduler-config-file",
		becomes: "settings.schedulerConfig of the chart takes podTopologySpread.defaultConstraints of that file; nothing " +
			"else of it is read"},
	{switches: "force-ds", becomes: "a node is launched with capacity for the pods of the DaemonSets that run on it"},
	{switches: "enable-dynamic-resource-allocation",
		becomes: "pods with resource claims get no node; devices are not supported yet"},
	{switches: "enable-csi-node-aware-scheduling", becomes: "the limits of volumes of a node are always considered"},
	{values: "provisioning-request-initial-backoff-time provisioning-request-max-backoff-time " +
		"provisioning-request-max-backoff-cache-size check-capacity-provisioning-request-max-batch-size " +
		"check-capacity-provisioning-request-batch-timebox check-capacity-processor-instance",
		switches: "enable-provisioning-requests check-capacity-batch-processing",
		becomes:  "ProvisioningRequests are not supported"},

	// The removal of nodes.
	{switches: "scale-down-enabled",
		becomes: "false becomes consolidationPolicy: WhenEmpty with consolidateAfter: Never in each NodePool"},
	{values: "scale-down-unneeded-time", becomes: "becomes spec.disruption.consolidateAfter of each NodePool"},
	{values: "max-scale-down-parallelism", becomes: "becomes a budget of nodes in spec.disruption.budgets of each NodePool"},
	{values: "max-empty-bulk-delete",
		becomes: "becomes a budget of nodes in spec.disruption.budgets of each NodePool, unless " +
			"--max-scale-down-parallelism is set"},
	{values: "max-drain-parallelism",
		becomes: "spec.disruption.budgets limits how many nodes of a NodePool are removed at a time"},
	{values: "scale-down-utilization-threshold scale-down-gpu-utilization-threshold",
		becomes: "nodes are removed if their pods fit elsewhere at a lower cost, not below a utilization threshold; a " +
			"threshold of 0 corresponds to consolidationPolicy: WhenEmpty"},
	{values: "scale-down-delay-after-add scale-down-delay-after-delete scale-down-delay-after-failure " +
		"unremovable-node-recheck-timeout",
		switches: "scale-down-delay-type-local",
		becomes: "there is no delay after a launch or a removal; spec.disruption.consolidateAfter counts from the last time " +
			"a pod was bound or removed"},
	{values: "scale-down-unready-time",
		switches: "scale-down-unready-enabled",
		becomes: "the feature gate NodeRepair replaces nodes that are not ready after 30 minutes (10 minutes if only a GPU " +
			"is not ready)"},
	{values: "max-total-unready-percentage ok-total-unready-count",
		becomes: "settings.unreadyBrake of the chart (\"45%,3\") stops voluntary removals meanwhile; the feature gate " +
			"NodeRepair replaces no node while more than a fifth of the nodes of a NodePool are unhealthy"},
	{values: "scale-down-non-empty-candidates-count scale-down-candidates-pool-ratio " +
		"scale-down-candidates-pool-min-count",
		becomes: "all nodes are considered for removal"},
	{switches: "skip-nodes-with-local-storage",
		becomes: "pods with emptyDir or hostPath are moved like other pods; to prevent that, annotate the pods with " +
			"karpenter.sh/do-not-disrupt: \"true\""},
	{switches: "skip-nodes-with-system-pods",
		becomes: "pods of kube-system are moved like other pods; a PodDisruptionBudget or karpenter.sh/do-not-disrupt " +
			"prevents that"},
	{switches: "skip-nodes-with-custom-controller-pods",
		becomes: "pods of any controller are moved; to prevent that, annotate the pods with karpenter.sh/do-not-disrupt: " +
			"\"true\""},
	{values: "min-replica-count",
		becomes: "pods are moved whatever the number of their replicas; a PodDisruptionBudget prevents that"},
	{switches: "ignore-daemonsets-utilization", becomes: "pods of DaemonSets never prevent the removal of a node"},
	{switches: "ignore-mirror-pods-utilization", becomes: "static pods never prevent the removal of a node"},
	{switches: "daemonset-eviction-for-empty-nodes daemonset-eviction-for-occupied-nodes",
		becomes: "pods of DaemonSets are evicted after all other pods"},
	{switches: "parallel-drain", becomes: "nodes are always drained in parallel"},
	{values: "max-graceful-termination-sec",
		becomes: "pods have their own terminationGracePeriodSeconds; spec.template.spec.terminationGracePeriod limits the " +
			"whole drain"},
	{values: "max-pod-eviction-time",
		becomes: "an eviction is retried without a time limit; spec.template.spec.terminationGracePeriod limits the whole " +
			"drain"},
	{values: "drain-priority-config",
		becomes: "pods are evicted in four groups: those of workloads, of DaemonSets, critical ones of workloads, of DaemonSets"},
	{values: "max-bulk-soft-taint-count max-bulk-soft-taint-time",
		switches: "cordon-node-before-terminating",
		becomes:  "a node gets the taint karpenter.sh/disrupted before its pods are moved"},
	{values: "node-delete-delay-after-taint node-deletion-batcher-interval",
		switches: "dynamic-node-delete-delay-after-taint-enabled",
		becomes:  "a node is removed as soon as it is drained"},
	{values: "node-deletion-delay-timeout",
		becomes: "finalizers of other programs delay the removal of a node; spec.template.spec.terminationGracePeriod " +
			"limits the whole drain"},
	{switches: "node-removal-latency-tracking-enabled",
		becomes: "the metric karpenter_nodes_termination_duration_seconds is always there"},

	// The life of a node.
	{values: "max-node-provision-time max-node-startup-time",
		switches: "force-delete-unregistered-nodes",
		becomes:  "a node that does not register within 15 minutes is deleted"},
	{switches: "force-delete-failed-nodes",
		becomes: "an instance that could not be launched is deleted, and its pods are planned again"},
	{values: "startup-taint ignore-taint", becomes: "becomes spec.template.spec.startupTaints of each NodePool"},
	{values: "startup-taint-prefix", becomes: "spec.template.spec.startupTaints of a NodePool has whole keys; list them there"},
	{values: "status-taint",
		becomes: "existing taints of nodes apply; add a temporary taint to spec.template.spec.startupTaints"},

	// The process.
	{values: "scan-interval",
		becomes: "the controller acts when the cluster changes; settings.batchIdleDuration is how long it waits for more " +
			"pods"},
	{switches: "frequent-loops-enabled", becomes: "the controller acts when the cluster changes"},
	{values: "predicate-parallelism cluster-snapshot-parallelism", becomes: "a plan is made on one core"},
	{values: "address", becomes: "controller.metrics.port and controller.healthProbe.port of the chart are the ports"},
	{switches: "emit-per-nodegroup-metrics", becomes: "metrics have the label nodepool"},
	{values: "status-config-map-name",
		switches: "write-status-configmap",
		becomes:  "conditions of NodePools and NodeClaims, events and kubectl karpenter top show the state"},
	{switches: "record-duplicated-events", becomes: "an event that repeats is sent again after some minutes"},
	{switches: "debugging-snapshot-enabled",
		becomes: "kubectl karpenter simulate --live --capture FILE writes all that a decision depends on"},
	{switches: "profiling", becomes: "settings.enableProfiling of the chart is the same"},
	{values: "max-inactivity max-failing-time max-startup-time",
		becomes: "the probes of the controller's Deployment define when it is restarted"},
	{values: "kube-client-qps", becomes: "settings.kubeClientQPS of the chart is the same"},
	{values: "kube-client-burst", becomes: "settings.kubeClientBurst of the chart is the same"},
	{values: "kube-api-content-type kubeconfig kubernetes user-agent", becomes: "the controller uses its service account"},
	{values: "namespace", becomes: "the namespace of the release is the controller's"},
	{prefixes: "leader-elect-",
		switches: "leader-elect",
		becomes: "settings.disableLeaderElection, leaderElectionName and leaderElectionNamespace of the chart define the " +
			"election"},
	{values: "feature-gates",
		becomes: "the gates of the Cluster Autoscaler do not exist here; settings.featureGates of the chart has the " +
			"controller's"},
	{prefixes: "log- logging-",
		values: "v vmodule stderrthreshold",
		switches: "logtostderr alsologtostderr one-output skip-headers skip-log-headers add-dir-header log-json-split-stream " +
			"log-text-split-stream",
		becomes: "logLevel, logEncoding and logOutputPaths of the chart define the logs"},

	// The cloud.
	{values: "cloud-provider", becomes: "settings.cloudProvider of the chart is aws, or kwok for simulated nodes"},
	{values: "cloud-config", becomes: "the region and the account are those of the controller's credentials"},
	{values: "cluster-name", becomes: "settings.clusterName of the chart is the name of the EKS cluster"},
	{prefixes: "cloud-provider-gce-",
		values: "gce-concurrent-refreshes gce-mig-instances-min-refresh-wait-time azure-container-registry-config",
		switches: "regional clusterapi-cloud-config-authoritative gce-expander-ephemeral-storage-support " +
			"bulk-mig-instances-listing-enabled",
		becomes: "belongs to a cloud or an API that this controller does not use"},
	{switches: "aws-use-static-instance-list",
		becomes: "instance types are read from the cloud; a list in the program is used until the first answer"},
}
