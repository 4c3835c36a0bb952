package userdata

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// Unknown returns the unknown fields of the NodeConfigs in the user's own data, as paths, sorted. nodeadm decodes a
// NodeConfig leniently, and the kubelet falls back to lenient decoding of its configuration. A node with such a field
// joins, and the field has no effect unless the node's version is newer and supports it.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/,
// https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/
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

// unknownIn returns the keys in a value, recursively, for which a type has no field.
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
