package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	_ "sigs.k8s.io/controller-runtime" // registers the metrics of controllers
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller/census"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// upstreamDashboards holds the metrics that upstream's public dashboards query, with the labels by which they select or
// group. They are in website/content/en/preview/getting-started/getting-started-with-karpenter of
// https://github.com/aws/karpenter-provider-aws. Their names before 1.0 (karpenter_nodes_created, karpenter_nodepool_usage,
// karpenter_disruption_...) are replaced by those of 1.x, which https://karpenter.sh/docs/reference/metrics lists.
var upstreamDashboards = map[string]map[string]string{
	"karpenter-capacity-dashboard.json": {
		"karpenter_nodes_created_total":                  "nodepool",
		"karpenter_nodes_terminated_total":               "nodepool",
		"karpenter_voluntary_disruption_eligible_nodes":  "reason",
		"karpenter_voluntary_disruption_decisions_total": "decision, reason, consolidation_type",
		"karpenter_pods_state":                           "arch, capacity_type, instance_type, nodepool, zone, phase, namespace, node",
		"karpenter_nodepools_usage":                      "nodepool, resource_type",
		"karpenter_nodepools_limit":                      "nodepool, resource_type",
		"karpenter_nodes_allocatable":                    "nodepool, zone, arch, capacity_type, instance_type, resource_type, node_name",
		"karpenter_nodes_total_pod_requests":             "nodepool, zone, arch, capacity_type, instance_type, resource_type, node_name",
		"karpenter_nodes_total_daemon_requests":          "nodepool, zone, arch, capacity_type, instance_type, resource_type, node_name",
	},
	"karpenter-performance-dashboard.json": {
		"karpenter_nodes_termination_duration_seconds": "",
		"karpenter_pods_startup_duration_seconds":      "",
		"controller_runtime_reconcile_time_seconds":    "controller",
		"controller_runtime_reconcile_total":           "controller",
	},
	"karpenter-controllers.json": {
		"workqueue_depth":                           "name",
		"controller_runtime_reconcile_total":        "controller",
		"controller_runtime_reconcile_errors_total": "controller",
		"controller_runtime_reconcile_time_seconds": "controller",
	},
}

// TestUpstreamDashboards checks that the metrics of upstream's dashboards exist with default settings, and have the
// labels by which the dashboards select and group.
func TestUpstreamDashboards(t *testing.T) {
	known := registered(t)
	classes := map[string]string{"ec2nodeclass": karpv1.NodeClassLabel("karpenter.k8s.aws", "EC2NodeClass")}
	for _, m := range telemetry.Reference(census.Kinds(classes)) {
		if !m.Detail {
			known[m.Name] = m.Labels
		}
	}
	for dashboard, queries := range upstreamDashboards {
		for metric, labels := range queries {
			have, exists := known[metric]
			if !exists {
				t.Errorf("%s queries %s, which does not exist with default settings", dashboard, metric)
				continue
			}
			for label := range strings.FieldsFuncSeq(labels, func(r rune) bool { return r == ',' || r == ' ' }) {
				if !slices.Contains(have, label) {
					t.Errorf("%s selects by the label %s of %s, which has %v", dashboard, label, metric, have)
				}
			}
		}
	}
}

// registered returns the metrics that controller-runtime registers, with their labels.
func registered(t *testing.T) names {
	t.Helper()
	to := make(chan *prometheus.Desc, 1000)
	ctrlmetrics.Registry.(prometheus.Collector).Describe(to)
	close(to)
	known := names{}
	for desc := range to {
		// Desc{fqName: "workqueue_depth", help: "...", constLabels: {}, variableLabels: {name,controller}}
		text := desc.String()
		_, name, _ := strings.Cut(text, `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		_, variable, _ := strings.Cut(text, "variableLabels: {")
		variable, _, _ = strings.Cut(variable, "}")
		known[name] = strings.Split(variable, ",")
	}
	if len(known["workqueue_depth"]) == 0 {
		t.Fatalf("the metrics of controller-runtime are not read: %v", known)
	}
	return known
}
