package review

import (
	"slices"
	"strings"
)

// deciding returns the part of an object that decisions depend on.
func deciding(kind string, content map[string]any) map[string]any {
	part := map[string]any{}
	about, _ := content["metadata"].(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	switch kind {
	case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "DaemonSet", "Job", "CronJob":
		part["spec"] = workload(spec)
	case "Pod":
		keep(part, "metadata", metadata(about, "labels"))
		keep(part, "spec", podSpec(spec))
	case "PodTemplate":
		template, _ := content["template"].(map[string]any)
		keep(part, "template", podTemplate(template))
	case "Node":
		keep(part, "metadata", metadata(about, "labels"))
		keep(part, "spec", some(spec, "taints", "unschedulable"))
		status, _ := content["status"].(map[string]any)
		keep(part, "status", some(status, "allocatable", "capacity"))
	case "NodeClaim":
		keep(part, "metadata", metadata(about, "labels"))
		part["spec"] = spec
	case "Namespace":
		keep(part, "metadata", some(about, "labels"))
	default:
		for key, value := range content {
			if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key) {
				part[key] = value
			}
		}
		keep(part, "metadata", metadata(about))
	}
	return part
}

func keep(in map[string]any, key string, value map[string]any) {
	if len(value) > 0 {
		in[key] = value
	}
}

// some returns the fields of the names that are there.
func some(of map[string]any, names ...string) map[string]any {
	part := map[string]any{}
	for _, name := range names {
		if value, has := of[name]; has {
			part[name] = value
		}
	}
	return part
}

// metadata returns fields of the metadata, and the annotations with a meaning.
func metadata(about map[string]any, names ...string) map[string]any {
	part := some(about, names...)
	annotations, _ := about["annotations"].(map[string]any)
	read := map[string]any{}
	for key, value := range annotations {
		if readAnnotation(key) {
			read[key] = value
		}
	}
	keep(part, "annotations", read)
	return part
}

// readAnnotation reports whether users set the annotation to decide something. Those that a controller writes are its
// notes.
func readAnnotation(key string) bool {
	prefix, name, _ := strings.Cut(key, "/")
	switch prefix {
	case "karpenter.sh", "karpenter-go.github.io", "compatibility.karpenter.sh", "cluster-autoscaler.kubernetes.io":
		return !slices.Contains([]string{"nodepool-hash", "nodepool-hash-version", "command", "pauses", "stack", "made-from"}, name)
	}
	return key == "controller.kubernetes.io/pod-deletion-cost"
}

// workload returns what decides about the pods of a workload.
func workload(spec map[string]any) map[string]any {
	part := some(spec, "replicas", "parallelism", "completions", "completionMode", "suspend", "selector", "ordinals",
		"volumeClaimTemplates")
	template, _ := spec["template"].(map[string]any)
	keep(part, "template", podTemplate(template))
	if job, has := spec["jobTemplate"].(map[string]any); has {
		inner, _ := job["spec"].(map[string]any)
		part["jobTemplate"] = map[string]any{"spec": workload(inner)}
	}
	return part
}

func podTemplate(template map[string]any) map[string]any {
	part := map[string]any{}
	about, _ := template["metadata"].(map[string]any)
	spec, _ := template["spec"].(map[string]any)
	keep(part, "metadata", metadata(about, "labels"))
	keep(part, "spec", podSpec(spec))
	return part
}

// podSpec returns what kube-scheduler, evictions and requests read: no images, commands or probes.
func podSpec(spec map[string]any) map[string]any {
	part := some(spec, "nodeName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead", "priority",
		"priorityClassName", "runtimeClassName", "schedulerName", "schedulingGates", "hostNetwork", "terminationGracePeriodSeconds",
		"resources", "resourceClaims", "os")
	for key, usual := range map[string]string{"schedulerName": "default-scheduler", "terminationGracePeriodSeconds": "30"} {
		if text(part[key]) == usual {
			delete(part, key)
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		keep(part, list, byName(spec[list], "resources", "ports", "restartPolicy"))
	}
	inits, _ := part["initContainers"].(map[string]any)
	afterSidecars(spec["initContainers"], inits)
	keep(part, "volumes", byName(spec["volumes"], "persistentVolumeClaim", "ephemeral", "csi"))
	return part
}

// afterSidecars adds to init containers the sidecars that start before them, which keep running: the requests of both
// count together. Source: KEP-753, https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/. The order
// says nothing else, and those without requests change no sum.
func afterSidecars(list any, by map[string]any) {
	members, _ := list.([]any)
	var sidecars []any
	for _, member := range members {
		m, _ := member.(map[string]any)
		part, _ := by[text(m["name"])].(map[string]any)
		switch {
		case part["resources"] == nil:
		case part["restartPolicy"] == "Always":
			sidecars = append(sidecars, m["name"])
		case len(sidecars) > 0:
			part["afterSidecars"] = slices.Clone(sidecars)
		}
	}
}

// byName returns the members of a list by their names, with some fields; members that have none of these are left out.
// Of ports only those of the host decide.
func byName(list any, fields ...string) map[string]any {
	members, _ := list.([]any)
	by := map[string]any{}
	for _, member := range members {
		m, _ := member.(map[string]any)
		part := some(m, fields...)
		if ports, has := part["ports"].([]any); has {
			part["ports"] = slices.DeleteFunc(slices.Clone(ports), func(p any) bool {
				port, _ := p.(map[string]any)
				return port["hostPort"] == nil
			})
			if len(part["ports"].([]any)) == 0 {
				delete(part, "ports")
			}
		}
		if resources, has := part["resources"].(map[string]any); has && len(resources) == 0 {
			delete(part, "resources")
		}
		if len(part) > 0 {
			by[text(m["name"])] = part
		}
	}
	return by
}
