package migrate

import (
	"slices"
	"strconv"
	"strings"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// scalerQuota is the name of the CapacityQuota that replaces the total limits of the Cluster Autoscaler.
const scalerQuota = "cluster-autoscaler"

// total is a flag of the Cluster Autoscaler that limits what all nodes have together.
type total struct {
	flag, form string
	parse      func(value string) (resource string, least, most int, valid bool)
}

var totals = []total{
	{"max-nodes-total", "an integer", func(value string) (string, int, int, bool) {
		most, err := strconv.Atoi(value)
		return "nodes", 0, most, err == nil && most >= 0
	}},
	{"cores-total", "MINIMUM:MAXIMUM", func(value string) (string, int, int, bool) { return between("cpu", value) }},
	{"memory-total", "MINIMUM:MAXIMUM", func(value string) (string, int, int, bool) { return between("memory", value) }},
	{"gpu-total", "TYPE:MINIMUM:MAXIMUM", func(value string) (string, int, int, bool) {
		kind, bounds, found := strings.Cut(value, ":")
		resource, least, most, valid := between(gpuResource(kind), bounds)
		return resource, least, most, valid && found && kind != ""
	}},
}

// between parses MINIMUM:MAXIMUM.
func between(resource, value string) (string, int, int, bool) {
	low, high, _ := strings.Cut(value, ":")
	least, wrong := strconv.Atoi(low)
	most, err := strconv.Atoi(high)
	return resource, least, most, wrong == nil && err == nil && least >= 0 && least <= most
}

// gpuResource returns the resource by which pods request GPUs of a type such as nvidia-tesla-t4.
func gpuResource(kind string) string {
	if strings.HasPrefix(strings.ToLower(kind), "amd") {
		return "amd.com/gpu"
	}
	return "nvidia.com/gpu"
}

// quota returns the limits of the CapacityQuota that replaces the total limits, by resource, and notes about them.
func (a *autoscaler) quota() map[string]int {
	limits := map[string]int{}
	for _, t := range totals {
		values := a.flags[t.flag]
		if t.flag != "gpu-total" && len(values) > 1 { // the last one counts, except of lists
			values = values[len(values)-1:]
		}
		for _, value := range values {
			resource, least, most, valid := t.parse(value)
			switch {
			case !valid:
				a.note(Impossible, "--"+t.flag, "is %s, want %s; ignored", value, t.form)
				continue
			case t.flag == "max-nodes-total" && most == 0: // no limit
				continue
			case least > 0:
				a.note(Advice, "--"+t.flag, "the minimum %d has no equivalent: nodes are removed when no pod needs them; "+
					"a NodePool with spec.replicas keeps nodes (feature gate StaticCapacity)", least)
			}
			limits[resource] += most
		}
	}
	return limits
}

// proposeQuota prints a CapacityQuota with the total limits after the Deployment of the Cluster Autoscaler.
func (m *migration) proposeQuota() {
	limits := m.scaler.quota()
	if len(limits) == 0 {
		return
	}
	object := autoscalingv1beta1.KindQuota + " " + scalerQuota
	if slices.ContainsFunc(m.items, func(i *item) bool {
		return i.is(autoscalingv1beta1.Group, autoscalingv1beta1.KindQuota) && i.name == scalerQuota
	}) {
		m.scaler.note(Advice, "", "%s is already in the input; not proposed", object)
		return
	}
	quota := mapping()
	set(quota, scalar(autoscalingv1beta1.GroupVersion.String()), "apiVersion")
	set(quota, scalar(autoscalingv1beta1.KindQuota), "kind")
	set(quota, scalar(scalerQuota), "metadata", "name")
	for _, resource := range []string{"nodes", "cpu", "memory", "nvidia.com/gpu", "amd.com/gpu"} {
		most, limited := limits[resource]
		switch {
		case resource == "memory" && limited:
			set(quota, scalar(strconv.Itoa(most)+"Gi"), "spec", "limits", "resources", resource)
		case limited:
			set(quota, integer(int64(most)), "spec", "limits", "resources", resource)
		}
	}
	quota.HeadComment = "# Proposed for the total limits of the Cluster Autoscaler. It counts all nodes of the cluster, also those of " +
		"its groups."
	m.scaler.after = append(m.scaler.after, &document{root: quota, anew: true, proposed: true})
	m.scaler.Became = append(m.scaler.Became, object)
	m.scaler.note(Advice, object, "counts all nodes of the cluster, also those of the groups until they are gone: "+
		"raise its limits for the migration, or nodes are launched only as nodes are removed")
}
