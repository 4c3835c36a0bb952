package chart

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/prometheus/model/labels"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// free are labels whose values are names of objects, places or processes, or bounds of buckets.
var free = []string{"nodepool", "name", "namespace", "node_name", "pod", "job", "le", "zone", "provider", "kind", "method",
	"controller", "cluster"}

// emitted holds the values that the controller sends for a label, by metric and label. They are the constants that the
// code sends.
var emitted = map[string]map[string][]string{
	"karpenter_nodeclaims_disrupted_total": {"reason": {telemetry.DisruptedEmpty, telemetry.DisruptedUnderutilized, telemetry.DisruptedDrifted,
		telemetry.DisruptedExpired, telemetry.DisruptedUnhealthy, telemetry.DisruptedInsufficientCapacity, telemetry.DisruptedNodeClassNotReady,
		telemetry.DisruptedLaunchTimeout, telemetry.DisruptedRegistrationTimeout, telemetry.DisruptedGarbageCollected}},
	"karpenter_voluntary_disruption_queue_failures_total": {"reason": lowerReasons()},
	"karpenter_voluntary_disruption_kept_nodes":           {"reason": lowerReasons()},
	"karpenter_nodeclaims_unjudged": {"cause": {telemetry.UnjudgedPoolMissing, telemetry.UnjudgedClassMissing, telemetry.UnjudgedCatalog,
		telemetry.UnjudgedProvider, telemetry.UnjudgedHash}},
	"karpenter_cloudprovider_errors_total": {"error": {"", telemetry.ErrorNotFound, telemetry.ErrorInsufficientCapacity,
		telemetry.ErrorNodeClassNotReady}},
	"karpenter_pods_eviction_requests_total": {"code": {strconv.Itoa(http.StatusOK), strconv.Itoa(http.StatusTooManyRequests)}},
	"karpenter_nodepools_paused":             {"reason": {pause.Launch, disruption.StaticLaunch, string(plan.Drifted), string(plan.Underutilized), string(plan.Expired)}},
	"karpenter_nodes_allocatable": {"resource_type": resources(),
		"capacity_type": {karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeReserved}},
	"karpenter_nodepools_usage": {"resource_type": resources()},
	"karpenter_nodepools_limit": {"resource_type": resources()},
	"operator_nodepool_status_condition_count": {
		"type": {status.ConditionReady, karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady,
			karpv1.ConditionNodeRegistrationHealthy},
		"status": {string(metav1.ConditionTrue), string(metav1.ConditionFalse), string(metav1.ConditionUnknown)}},
}

// lowerReasons returns the reasons of disruptions as the loop sends them.
func lowerReasons() []string {
	var all []string
	for _, r := range []plan.Reason{plan.Empty, plan.Drifted, plan.Underutilized, plan.Expired} {
		all = append(all, strings.ToLower(string(r)))
	}
	return all
}

func resources() []string {
	var all []string
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
		all = append(all, telemetry.ResourceType(string(r)))
	}
	return all
}

// checkValues checks the values of a matcher.
func checkValues(t *testing.T, where, metric string, m *labels.Matcher) {
	t.Helper()
	if problem := valueProblem(metric, m); problem != "" {
		t.Errorf("%s: %s", where, problem)
	}
}

// valueProblem reports a value of a matcher that the controller never sends. An expression that excludes values must
// exclude existing ones.
func valueProblem(metric string, m *labels.Matcher) string {
	if slices.Contains(free, m.Name) {
		return ""
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if _, known := emitted[metric]; !known {
			metric = strings.TrimSuffix(metric, suffix)
		}
	}
	values, known := emitted[metric][m.Name]
	if !known {
		return fmt.Sprintf("this test does not know the values of %s of %s; add the constants that the code sends", m.Name, metric)
	}
	wanted := []string{m.Value}
	if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
		wanted = strings.Split(m.Value, "|")
	}
	for _, value := range wanted {
		if !slices.Contains(values, value) {
			return fmt.Sprintf("%s of %s is never %q, but one of %q", m.Name, metric, value, values)
		}
	}
	return ""
}

// TestLabelValues checks that values that are never sent are found, in each kind of matcher.
func TestLabelValues(t *testing.T) {
	for _, m := range []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, "reason", "Underutilized"),
		labels.MustNewMatcher(labels.MatchRegexp, "reason", "underutilized|drift"),
		labels.MustNewMatcher(labels.MatchNotEqual, "reason", "Empty"),
		labels.MustNewMatcher(labels.MatchEqual, "code", "x"),
	} {
		if valueProblem("karpenter_voluntary_disruption_kept_nodes", m) == "" {
			t.Errorf("%s is accepted", m)
		}
	}
	checkValues(t, "here", "karpenter_voluntary_disruption_kept_nodes",
		labels.MustNewMatcher(labels.MatchRegexp, "reason", "underutilized|drifted"))
}
