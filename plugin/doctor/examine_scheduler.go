package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/cloud"
)

// scheduler returns findings about pods for which kube-scheduler failed with an error. Their reason is not
// Unschedulable, so no node is launched for them: the problem is not a lack of nodes. There is one finding for each
// message, without the parts that differ between pods.
func scheduler(f *Facts, _ Options) []cloud.Finding {
	type failure struct {
		reason, message, first string
		count                  int
	}
	failures := map[string]*failure{}
	for i := range f.Waiting {
		pod := &f.Waiting[i]
		for _, c := range pod.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Status == corev1.ConditionTrue || c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulingGated || c.Reason == "" {
				continue
			}
			name := pod.Namespace + "/" + pod.Name
			message := strings.ReplaceAll(c.Message, name, "the pod")
			key := c.Reason + " " + message
			if failures[key] == nil {
				failures[key] = &failure{c.Reason, shortened(message), name, 0}
			}
			failures[key].count++
			failures[key].first = min(failures[key].first, name)
		}
	}
	var list []cloud.Finding
	for _, one := range failures {
		list = append(list, found(SchedulerFails, "pod/"+one.first, fmt.Sprintf(
			"kube-scheduler fails on %d pods with %s, which is not Unschedulable, so no node is launched for them: %s", one.count, one.reason, one.message),
			"kubectl describe pod shows the message; the cause is a pod or node in the message, a pod with extremely large requests "+
				"(kubectl get pods -A), or a plugin or extender of kube-scheduler; see the log of kube-scheduler"))
	}
	slices.SortFunc(list, func(a, b cloud.Finding) int { return strings.Compare(a.Object+a.Problem, b.Object+b.Problem) })
	return list
}

// shortened returns a message truncated to 300 bytes.
func shortened(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
