package v1beta1

import (
	"reflect"
	"strings"
)

// These are values of spec.disruption.consolidationPolicy that have another name in the other version.
const (
	whenUnderutilized        = "WhenUnderutilized"
	whenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized"
)

// atOnce is v1's default of consolidateAfter.
const atOnce = "0s"

func poolToV1(_ Converter, pool map[string]any) {
	if template := child(pool, "spec", "template", "spec"); template != nil {
		delete(template, "resources") // they were always empty
		referenceToV1(pool, template)
		kubeletToV1(pool, template)
	}
	disruption := child(pool, "spec", "disruption")
	if disruption == nil {
		return
	}
	if disruption["consolidationPolicy"] == whenUnderutilized {
		disruption["consolidationPolicy"] = whenEmptyOrUnderutilized
	}
	if !present(disruption, "consolidateAfter") {
		disruption["consolidateAfter"] = atOnce
	}
	template := child(pool, "spec", "template", "spec")
	if age, ok := disruption["expireAfter"]; ok && template != nil {
		template["expireAfter"] = age
		delete(disruption, "expireAfter")
	}
}

func poolFromV1(pool map[string]any) {
	spec, template := child(pool, "spec"), child(pool, "spec", "template", "spec")
	if template == nil {
		return
	}
	referenceFromV1(pool, template)
	kubeletFromV1(pool, template)
	disruption := child(spec, "disruption")
	if age, ok := template["expireAfter"]; ok && (disruption != nil || !present(spec, "disruption")) {
		if disruption == nil {
			disruption = map[string]any{}
			spec["disruption"] = disruption
		}
		disruption["expireAfter"] = age
		delete(template, "expireAfter")
	}
	policy := text(disruption, "consolidationPolicy")
	if policy == whenEmptyOrUnderutilized {
		disruption["consolidationPolicy"] = whenUnderutilized
	}
	if (policy == whenEmptyOrUnderutilized || policy == "") && disruption["consolidateAfter"] == atOnce {
		delete(disruption, "consolidateAfter")
	}
}

func claimToV1(c Converter, claim map[string]any) {
	spec := child(claim, "spec")
	if spec == nil {
		return
	}
	referenceToV1(claim, spec)
	kubeletToV1(claim, spec)
	if present(spec, "expireAfter") {
		return
	}
	age := ""
	if pool := text(child(claim, "metadata", "labels"), core+"/nodepool"); pool != "" && c.Expiry != nil {
		age = c.Expiry(pool)
	}
	if age == "" {
		age = ExpiryNever
	}
	spec["expireAfter"] = age
}

func claimFromV1(claim map[string]any) {
	if spec := child(claim, "spec"); spec != nil {
		referenceFromV1(claim, spec)
		kubeletFromV1(claim, spec)
	}
}

// kubeletToV1 moves the kubelet settings to the annotation. owner gets the annotation, and spec contains the field.
func kubeletToV1(owner, spec map[string]any) {
	if settings, ok := spec["kubelet"].(map[string]any); ok {
		annotate(owner, AnnotationKubelet, written(settings))
		delete(spec, "kubelet")
	}
}

func kubeletFromV1(owner, spec map[string]any) {
	text, ok := annotation(owner, AnnotationKubelet)
	settings := noted(text)
	if !ok || settings == nil || present(spec, "kubelet") {
		return
	}
	spec["kubelet"] = settings
	unannotate(owner, AnnotationKubelet)
}

// referenceToV1 replaces the API version by a group. It records the original reference if it differs from the
// conversion of v1's.
func referenceToV1(owner, spec map[string]any) {
	was := child(spec, "nodeClassRef")
	if was == nil {
		return
	}
	is := map[string]any{}
	for key, value := range was {
		if key != "apiVersion" {
			is[key] = value
		}
	}
	is["group"] = groupOf(text(was, "apiVersion"))
	if text(was, "kind") == "" {
		is["kind"] = awsClass
	}
	spec["nodeClassRef"] = is
	if !reflect.DeepEqual(betaReference(is), was) {
		annotate(owner, AnnotationNodeClassReference, written(was))
	}
}

func referenceFromV1(owner, spec map[string]any) {
	is := child(spec, "nodeClassRef")
	if is == nil {
		return
	}
	spec["nodeClassRef"] = betaReference(is)
	text, _ := annotation(owner, AnnotationNodeClassReference)
	was := noted(text)
	if was == nil {
		return
	}
	unannotate(owner, AnnotationNodeClassReference)
	trial := map[string]any{"nodeClassRef": was}
	referenceToV1(map[string]any{}, trial)
	if reflect.DeepEqual(trial["nodeClassRef"], any(is)) { // the reference is unchanged since
		spec["nodeClassRef"] = was
	}
}

// groupOf returns the group of an API version. Some manifests have no API version, or only the group.
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if group != "" && (found || strings.Contains(group, ".")) {
		return group
	}
	return aws
}

// betaReference converts a reference of v1 to v1beta1, without a recorded original.
func betaReference(is map[string]any) map[string]any {
	was := map[string]any{}
	for key, value := range is {
		if key != "group" {
			was[key] = value
		}
	}
	if group := text(is, "group"); group != "" {
		was["apiVersion"] = group + "/" + versionOf(group)
	}
	return was
}

// versionOf returns the version of a node class at the time of v1beta1.
func versionOf(group string) string {
	switch group {
	case aws:
		return v1beta1
	case "karpenter.kwok.sh":
		return "v1alpha1"
	}
	return v1
}

// PoolToAsk returns the name of the pool that contains the expiration of an object of v1beta1, if the object is a
// claim without its own. It returns an empty string for all others.
func PoolToAsk(object map[string]any) string {
	spec := child(object, "spec")
	if text(object, "apiVersion") != core+"/"+v1beta1 || text(object, "kind") != "NodeClaim" || spec == nil || present(spec, "expireAfter") {
		return ""
	}
	return text(child(object, "metadata", "labels"), core+"/nodepool")
}
