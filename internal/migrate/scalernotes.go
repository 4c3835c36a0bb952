package migrate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// This file describes the migration of the Cluster Autoscaler's flags, and of the priorities of its expander
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca).

// mappedFlags are those that fields of pools represent.
var mappedFlags = []string{"nodes", "scale-down-enabled", "scale-down-unneeded-time", "max-scale-down-parallelism",
	"max-empty-bulk-delete", "startup-taint", "ignore-taint"}

// processFlags are about the program itself: where it runs, what it logs, the rate of its API calls. Those about logs
// are matched by prefix.
var (
	processFlags = []string{
		"address", "aws-use-static-instance-list", "cloud-config", "cloud-provider", "cluster-name",
		"clusterapi-cloud-config-authoritative", "debugging-snapshot-enabled",
		"emit-per-nodegroup-metrics", "estimator", "kube-api-content-type", "kube-client-burst", "kube-client-qps",
		"kubeconfig", "kubernetes", "logtostderr", "alsologtostderr",
		"max-failing-time", "max-inactivity", "namespace", "one-output", "profiling", "record-duplicated-events",
		"regional", "scan-interval", "skip-headers", "skip-log-headers",
		"status-config-map-name", "stderrthreshold", "user-agent", "v", "vmodule", "write-status-configmap",
		"add-dir-header", "feature-gates", "logging-format",
	}
	processFlagPrefixes = []string{"leader-elect", "log-", "logging-"}
)

// flagNotes contains notes on flags that are not fields of pools.
var flagNotes = map[string]string{
	"expander": "NodePools are tried in the order of spec.weight, and a NodePool launches the cheapest instance type that fits; " +
		"the priorities of the expander priority become weights if its ConfigMap is in the input",
	"balance-similar-node-groups":            similar,
	"balancing-ignore-label":                 similar,
	"balancing-label":                        similar,
	"node-group-auto-discovery":              "tags of Auto Scaling groups are not read; each node group in the input becomes a NodePool",
	"node-autoprovisioning-enabled":          "NodePools are not created automatically; a NodePool can launch any instance type that fits its requirements",
	"max-autoprovisioned-node-group-count":   "NodePools are not created automatically",
	"enforce-node-group-min-size":            "a NodePool has no minimum size; a separate NodePool with spec.replicas keeps nodes (feature gate StaticCapacity)",
	"skip-nodes-with-local-storage":          "pods with emptyDir or hostPath are moved like other pods; " + annotate,
	"skip-nodes-with-system-pods":            "pods of kube-system are moved like other pods; a PodDisruptionBudget or karpenter.sh/do-not-disrupt prevents that",
	"skip-nodes-with-custom-controller-pods": "pods of any controller are moved; " + annotate,
	"min-replica-count":                      "pods are moved whatever the number of their replicas; a PodDisruptionBudget prevents that",
	"max-nodes-total":                        "limits apply to each NodePool separately; set spec.limits.nodes",
	"cores-total":                            "limits apply to each NodePool separately; set spec.limits.cpu",
	"memory-total":                           "limits apply to each NodePool separately; set spec.limits.memory",
	"gpu-total":                              "limits apply to each NodePool separately; set spec.limits, for example of nvidia.com/gpu",
	"scale-down-delay-after-add":             noDelay,
	"scale-down-delay-after-delete":          noDelay,
	"scale-down-delay-after-failure":         noDelay,
	"scale-down-delay-type-local":            noDelay,
	"unremovable-node-recheck-timeout":       noDelay,
	"scale-down-unready-time":                "the feature gate NodeRepair replaces nodes that are not ready after 30 minutes (10 minutes if only a GPU is not ready)",
	"max-total-unready-percentage":           unready,
	"ok-total-unready-count":                 unready,
	"max-graceful-termination-sec":           "pods have their own terminationGracePeriodSeconds; " + wholeDrain,
	"max-pod-eviction-time":                  "an eviction is retried without a time limit; " + wholeDrain,
	"max-drain-parallelism":                  "spec.disruption.budgets limits how many nodes of a NodePool are removed at a time",
	"max-node-provision-time":                "a node that does not register within 15 minutes is deleted",
	"new-pod-scale-up-delay": "settings.newPodDelay of the chart is the same for each pod; " +
		"the values settings.batchIdleDuration and settings.batchMaxDuration of the chart define " +
		"how long the controller waits for more pods",
	"expendable-pods-priority-cutoff": "settings.expendablePodsPriorityCutoff of the chart is the same; " +
		"without it every pod that cannot be scheduled counts",
	"scale-down-utilization-threshold":      threshold,
	"scale-down-gpu-utilization-threshold":  threshold,
	"ignore-daemonsets-utilization":         "pods of DaemonSets never prevent the removal of a node",
	"ignore-mirror-pods-utilization":        "static pods never prevent the removal of a node",
	"daemonset-eviction-for-empty-nodes":    daemonPodsLast,
	"daemonset-eviction-for-occupied-nodes": daemonPodsLast,
	"cordon-node-before-terminating":        "a node gets the taint karpenter.sh/disrupted before its pods are moved",
	"node-delete-delay-after-taint":         "a node is removed as soon as it is drained",
	"status-taint":                          "existing taints of nodes apply; add a temporary taint to spec.template.spec.startupTaints",
	"initial-node-group-backoff-duration":   backoff,
	"max-node-group-backoff-duration":       backoff,
	"node-group-backoff-reset-timeout":      backoff,
	"enable-provisioning-requests":          "ProvisioningRequests are not supported",
	"force-ds":                              "a node is launched with capacity for the pods of the DaemonSets that run on it",
	"scale-up-from-zero":                    "a NodePool launches nodes whatever the number of its existing nodes",
}

const (
	similar  = "a NodePool launches nodes in all its zones; topologySpreadConstraints of the pods define how the pods are spread"
	annotate = "to prevent that, annotate the pods with karpenter.sh/do-not-disrupt: \"true\""
	noDelay  = "there is no delay after a launch or a removal; spec.disruption.consolidateAfter counts from the last time a pod was bound or removed"
	unready  = "settings.unreadyBrake of the chart (\"45%,3\") stops voluntary removals meanwhile; " +
		"the feature gate NodeRepair replaces no node while more than a fifth of the nodes of a NodePool are unhealthy"
	wholeDrain = "spec.template.spec.terminationGracePeriod limits the whole drain"
	threshold  = "nodes are removed if their pods fit elsewhere at a lower cost, not below a utilization threshold; " +
		"a threshold of 0 corresponds to consolidationPolicy: WhenEmpty"
	daemonPodsLast = "pods of DaemonSets are evicted after all other pods"
	backoff        = "an offering without capacity is excluded for 3 minutes, separately for each instance type and zone"
)

// describe adds notes on the flags.
func (a *autoscaler) describe(groups []*nodeGroup) {
	for _, name := range slices.Sorted(maps.Keys(a.flags)) {
		value := strings.Join(a.flags[name], ", ")
		why := flagNotes[name]
		known := slices.Contains(mappedFlags, name) || slices.Contains(processFlags, name) || slices.ContainsFunc(processFlagPrefixes,
			func(begin string) bool { return strings.HasPrefix(name, begin) })
		switch {
		case why != "":
			a.note(Advice, "--"+name, "is %s; %s", value, why)
		case !known:
			a.note(Advice, "--"+name, "unknown flag with the value %s; ignored", value)
		}
	}
	a.unreadable()
	if len(groups) == 0 {
		a.note(Advice, "", "the input contains no node group; add the ClusterConfig of eksctl or nodes (kubectl get nodes -o yaml), or use --live")
	}
}

// unreadable adds notes on values that cannot be parsed, for which the flag's default is used.
func (a *autoscaler) unreadable() {
	isTime := func(value string) bool { _, err := time.ParseDuration(value); return err == nil }
	isNumber := func(value string) bool { _, err := strconv.ParseFloat(value, 64); return err == nil }
	isTruth := func(value string) bool { _, err := strconv.ParseBool(value); return err == nil }
	isCount := func(value string) bool { n, err := strconv.Atoi(value); return err == nil && n > 0 }
	for _, one := range []struct {
		flag, want, instead string
		is                  func(string) bool
	}{
		{"scale-down-unneeded-time", "a duration such as 10m", "treated as 10m", isTime},
		{"scale-down-enabled", "true or false", "treated as true", isTruth},
		{"scale-down-utilization-threshold", "a number from 0 to 1", "treated as 0.5", isNumber},
		{"max-scale-down-parallelism", "an integer above 0", "ignored", isCount},
		{"max-empty-bulk-delete", "an integer above 0", "ignored", isCount},
	} {
		if value := a.flag(one.flag, ""); value != "" && !one.is(value) {
			a.note(Impossible, "--"+one.flag, "is %s, want %s; %s", value, one.want, one.instead)
		}
	}
}

// expanderPriorities is the name of the ConfigMap of the expander priority.
const expanderPriorities = "cluster-autoscaler-priority-expander"

// ranks returns the weights of groups by the ConfigMap of the expander priority: 100 for the highest, then 90, 80
// ..., in smaller steps if there are more than ten.
func (m *migration) ranks(groups []*nodeGroup) map[*nodeGroup]int {
	weights := map[*nodeGroup]int{}
	if m.scaler == nil || !strings.Contains(m.scaler.flag("expander", ""), "priority") {
		return weights
	}
	read := false
	for _, i := range m.items {
		if i.kind == "ConfigMap" && i.name == expanderPriorities {
			read = true
			i.rank(groups, weights)
		}
	}
	if !read {
		m.scaler.noteFlag("--expander", "is priority, and the ConfigMap %s is not in the input; no NodePool gets a weight", expanderPriorities)
	}
	return weights
}

// rank adds the weights of groups from one ConfigMap.
func (i *item) rank(groups []*nodeGroup, weights map[*nodeGroup]int) {
	var table yaml.Node
	if err := yaml.Unmarshal([]byte(text(at(i.root, "data", "priorities"))),
		&table); err != nil || len(table.Content) == 0 || table.Content[0].Kind != yaml.MappingNode {
		i.note(Impossible, "data.priorities", "cannot be parsed, want lists of patterns by priority; no NodePool gets a weight")
		return
	}
	ranks := fields(table.Content[0])
	slices.SortFunc(ranks, func(a, b string) int { return number(b) - number(a) })
	step := 10
	if len(ranks) > 10 {
		step = max(1, 99/len(ranks))
	}
	for n, rank := range ranks {
		for _, pattern := range texts(at(table.Content[0], rank)) {
			form, err := regexp.Compile(pattern)
			if err != nil {
				i.note(Impossible, "data.priorities", "%s: %q is not a regular expression: %s", rank, pattern, err)
				continue
			}
			matched := false
			for _, g := range groups {
				if g.matches(form) {
					matched = true
					if weights[g] == 0 {
						weights[g] = max(100-step*n, 1)
					}
				}
			}
			if !matched {
				i.note(Advice, "data.priorities", "%s: %q matches no node group in the input", rank, pattern)
			}
		}
	}
}

// matches reports whether a pattern matches the group's own name or a name that eksctl and EKS derive from it.
func (g *nodeGroup) matches(form *regexp.Regexp) bool {
	called := append([]string{g.name, "eks-" + g.name + "-00000000-0000-0000-0000-000000000000"}, g.clouds...)
	if cluster := g.made["alpha.eksctl.io/cluster-name"]; cluster != "" {
		called = append(called, "eksctl-"+cluster+"-nodegroup-"+g.name+"-NodeGroup-000000000000")
	}
	return slices.ContainsFunc(called, form.MatchString)
}
