package userdata

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// Unknown are the fields of the NodeConfigs in the user's own data that are not known here, as paths, sorted. nodeadm decodes
// NodeConfig without strictness, and the kubelet falls back to decoding its configuration without it: a node with such a field
// joins, and the field has no effect, or one that only a newer version gives it.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/, https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/
func Unknown(r Request) []string {
	if r.Family != awsv1.FamilyAL2023 {
		return nil
	}
	parts, err := r.al2023Custom()
	if err != nil {
		return nil
	}
	var unknown []string
	for _, p := range parts {
		if mediaType, err := p.mediaType(); err != nil || mediaType != typeNodeConfig {
			continue
		}
		if text, err := p.decoded(); err == nil {
			unknown = append(unknown, unknownFields(text)...)
		}
	}
	slices.Sort(unknown)
	return slices.Compact(unknown)
}

func unknownFields(text string) []string {
	fields := map[string]any{}
	if yaml.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	unknown := unknownIn("", fields, reflect.TypeFor[nodeConfig]())
	spec, _ := fields["spec"].(map[string]any)
	kubelet, _ := spec["kubelet"].(map[string]any)
	config, _ := kubelet["config"].(map[string]any)
	for name := range config {
		if kubeletField(name) == "" {
			unknown = append(unknown, "spec.kubelet.config."+name)
		}
	}
	return unknown
}

// unknownIn are the keys of a value, and of what is in it, that a type has no field for.
func unknownIn(path string, value any, t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fields, isMap := value.(map[string]any)
	if t.Kind() != reflect.Struct || !isMap {
		return nil
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = t.Field(i).Type
	}
	var unknown []string
	for name, inner := range fields {
		if known[name] == nil {
			unknown = append(unknown, path+name)
			continue
		}
		unknown = append(unknown, unknownIn(path+name+".", inner, known[name])...)
	}
	return unknown
}
