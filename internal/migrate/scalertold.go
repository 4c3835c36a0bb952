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

// spoken are the flags that fields of pools represent.
var spoken = []string{"nodes", "scale-down-enabled", "scale-down-unneeded-time", "max-scale-down-parallelism",
	"max-empty-bulk-delete", "startup-taint", "ignore-taint"}

// itself are flags about the program itself: where it runs, what it logs, the rate of its API calls. Those about logs
// are matched by prefix.
var (
	itself = []string{
		"address", "aws-use-static-instance-list", "cloud-config", "cloud-provider", "cluster-name",
		"clusterapi-cloud-config-authoritative", "debugging-snapshot-enabled",
		"emit-per-nodegroup-metrics", "estimator", "kube-api-content-type", "kube-client-burst", "kube-client-qps",
		"kubeconfig", "kubernetes", "logtostderr", "alsologtostderr",
		"max-failing-time", "max-inactivity", "namespace", "one-output", "profiling", "record-duplicated-events",
		"regional", "scan-interval", "skip-headers", "skip-log-headers",
		"status-config-map-name", "stderrthreshold", "user-agent", "v", "vmodule", "write-status-configmap",
		"add-dir-header", "feature-gates", "logging-format",
	}
	itselfBegins = []string{"leader-elect", "log-", "logging-"}
)

// told contains notes on flags that are not fields of pools.
var told = map[string]string{
	"expander":                               "pools are tried by spec.weight, and of what a pool may launch, the cheapest that fits is launched; the expander priority became weights if its ConfigMap was read",
	"balance-similar-node-groups":            similar,
	"balancing-ignore-label":                 similar,
	"balancing-label":                        similar,
	"node-group-auto-discovery":              "tags of Auto Scaling groups are not looked at: there is a pool for each group that is known here",
	"node-autoprovisioning-enabled":          "pools are not made by themselves; one pool may launch any type that fits its requirements",
	"max-autoprovisioned-node-group-count":   "pools are not made by themselves",
	"enforce-node-group-min-size":            "a pool has no minimum size; spec.replicas of a NodePool of its own keeps nodes (feature gate StaticCapacity)",
	"skip-nodes-with-local-storage":          "pods with emptyDir or hostPath are moved like others; annotate those that must be kept with karpenter.sh/do-not-disrupt: \"true\"",
	"skip-nodes-with-system-pods":            "pods of kube-system are moved like others; a PodDisruptionBudget or karpenter.sh/do-not-disrupt keeps them",
	"skip-nodes-with-custom-controller-pods": "pods of any controller are moved; annotate those that must be kept with karpenter.sh/do-not-disrupt: \"true\"",
	"min-replica-count":                      "pods are moved however few replicas there are; a PodDisruptionBudget keeps them",
	"max-nodes-total":                        "limits are each pool's own; see spec.limits.nodes",
	"cores-total":                            "limits are each pool's own; see spec.limits.cpu",
	"memory-total":                           "limits are each pool's own; see spec.limits.memory",
	"gpu-total":                              "limits are each pool's own; see spec.limits, such as nvidia.com/gpu",
	"scale-down-delay-after-add":             noDelay,
	"scale-down-delay-after-delete":          noDelay,
	"scale-down-delay-after-failure":         noDelay,
	"scale-down-delay-type-local":            noDelay,
	"unremovable-node-recheck-timeout":       noDelay,
	"scale-down-unready-time":                "nodes that are not ready are replaced with the feature gate NodeRepair, after 30 minutes (10 where only a GPU is)",
	"max-total-unready-percentage":           unready,
	"ok-total-unready-count":                 unready,
	"max-graceful-termination-sec":           "pods get their own terminationGracePeriodSeconds; spec.template.spec.terminationGracePeriod limits the whole drain",
	"max-pod-eviction-time":                  "an eviction is tried for as long as it takes; spec.template.spec.terminationGracePeriod limits the whole drain",
	"max-drain-parallelism":                  "spec.disruption.budgets say how many nodes of a pool are removed at a time",
	"max-node-provision-time":                "a node that does not join within 15 minutes is deleted",
	"new-pod-scale-up-delay":                 "the chart's values settings.batchIdleDuration and settings.batchMaxDuration say how long is waited for more pods",
	"expendable-pods-priority-cutoff":        "every pod that cannot be scheduled counts, whatever its priority",
	"scale-down-utilization-threshold":       threshold,
	"scale-down-gpu-utilization-threshold":   threshold,
	"ignore-daemonsets-utilization":          "pods of DaemonSets never keep a node",
	"ignore-mirror-pods-utilization":         "static pods never keep a node",
	"daemonset-eviction-for-empty-nodes":     "pods of DaemonSets are evicted last, after the others",
	"daemonset-eviction-for-occupied-nodes":  "pods of DaemonSets are evicted last, after the others",
	"cordon-node-before-terminating":         "a node gets the taint karpenter.sh/disrupted before its pods are moved",
	"node-delete-delay-after-taint":          "a node is removed as soon as it is drained",
	"status-taint":                           "taints of nodes that are there count as they are; a taint that goes by itself is one of spec.template.spec.startupTaints",
	"initial-node-group-backoff-duration":    backoff,
	"max-node-group-backoff-duration":        backoff,
	"node-group-backoff-reset-timeout":       backoff,
	"enable-provisioning-requests":           "ProvisioningRequests are not acted on",
	"force-ds":                               "the pods of DaemonSets that a new node gets are counted before it is launched",
	"scale-up-from-zero":                     "a pool launches from zero as from any other number",
}

const (
	similar = "one pool launches in all its zones; topologySpreadConstraints of the pods say how they are spread"
	noDelay = "there is no delay after a launch or a removal; spec.disruption.consolidateAfter counts from " +
		"the last time that a pod was bound or removed"
	unready   = "nodes that are not ready do not stop the controller; with the feature gate NodeRepair it replaces none while more than a fifth of a pool is unhealthy"
	threshold = "nodes are removed when their pods fit elsewhere for less money, not below a utilization threshold; " +
		"0 would be consolidationPolicy: WhenEmpty"
	backoff = "what is sold out is excluded for 3 minutes, type by type and zone by zone"
)

// describe adds notes on the flags.
func (a *autoscaler) describe(groups []*nodeGroup) {
	for _, name := range slices.Sorted(maps.Keys(a.flags)) {
		value := strings.Join(a.flags[name], ", ")
		why := told[name]
		about := slices.Contains(spoken, name) || slices.Contains(itself, name) || slices.ContainsFunc(itselfBegins,
			func(begin string) bool { return strings.HasPrefix(name, begin) })
		switch {
		case why != "":
			a.note(Advice, "--"+name, "is %s: %s", value, why)
		case !about:
			a.note(Advice, "--"+name, "is %s: this flag is not known here, and nothing is made of it", value)
		}
	}
	a.unreadable()
	if len(groups) == 0 {
		a.note(Advice, "", "no node group is known: give the ClusterConfig of eksctl too, or nodes (kubectl get nodes -o yaml), or --live")
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
		{"scale-down-unneeded-time", "a time such as 10m", "it counts as 10m", isTime},
		{"scale-down-enabled", "true or false", "it counts as true", isTruth},
		{"scale-down-utilization-threshold", "a number from 0 to 1", "it counts as 0.5", isNumber},
		{"max-scale-down-parallelism", "a number above 0", "no budget is made of it", isCount},
		{"max-empty-bulk-delete", "a number above 0", "no budget is made of it", isCount},
	} {
		if value := a.flag(one.flag, ""); value != "" && !one.is(value) {
			a.note(Impossible, "--"+one.flag, "is %s, want %s: %s", value, one.want, one.instead)
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
		m.scaler.noteFlag("--expander", "is priority, and the ConfigMap %s is not in the input: no pool has a weight", expanderPriorities)
	}
	return weights
}

// rank adds the weights of groups from one ConfigMap.
func (i *item) rank(groups []*nodeGroup, weights map[*nodeGroup]int) {
	var table yaml.Node
	if err := yaml.Unmarshal([]byte(text(at(i.root, "data", "priorities"))),
		&table); err != nil || len(table.Content) == 0 || table.Content[0].Kind != yaml.MappingNode {
		i.note(Impossible, "data.priorities", "cannot be read, want lists of patterns by rank: no pool has a weight")
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
				i.note(Impossible, "data.priorities", "%s: %q is no pattern: %s", rank, pattern, err)
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
				i.note(Advice, "data.priorities", "%s: %q matches no group that is known", rank, pattern)
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
