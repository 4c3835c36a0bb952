package userdata

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// kubeletFields has one field of kubelet.config.k8s.io/v1beta1 per line, with the kind of its value: those of the
// struct KubeletConfiguration in config/v1beta1/types.go of k8s.io/kubelet v0.36.3. That module is not imported because
// it depends on logging and tracing libraries. Kinds: "texts" is a list of strings, "strings" a map of strings; "list"
// and "map" have any elements.
//
//go:embed kubelet_fields.txt
var kubeletFields string

// KubeletError describes the problems in spec.kubelet of a class.
type KubeletError struct {
	// Reason is awsv1.ReasonInvalidKubeletConfiguration, or awsv1.ReasonUnsupportedKubeletConfiguration if another
	// image family would accept it.
	Reason string
	// Problems lists the fields and valid forms, in a fixed order.
	Problems []string
}

func (e *KubeletError) Error() string { return "spec.kubelet: " + strings.Join(e.Problems, "; ") }

// CheckKubelet returns the settings that the kubelet would reject, or that an image family cannot pass on. Expressions
// (maxPods, kubeReserved, systemReserved) are not checked. Errors are *KubeletError.
func CheckKubelet(family awsv1.Family, k *awsv1.KubeletConfiguration) error {
	if k == nil {
		return nil
	}
	if problems := invalid(k); len(problems) > 0 {
		return &KubeletError{awsv1.ReasonInvalidKubeletConfiguration, problems}
	}
	if problems := unsupported(family, k); len(problems) > 0 {
		return &KubeletError{awsv1.ReasonUnsupportedKubeletConfiguration, problems}
	}
	return nil
}

func invalid(k *awsv1.KubeletConfiguration) []string {
	var problems []string
	for _, address := range k.ClusterDNS {
		if _, err := netip.ParseAddr(address); err != nil {
			problems = append(problems, fmt.Sprintf("clusterDNS: %q is not an IP address", address))
		}
	}
	if k.MaxPods != nil && k.MaxPods.IntVal < 0 {
		problems = append(problems, fmt.Sprintf("maxPods: %d is negative", k.MaxPods.IntVal))
	}
	problems = append(problems, reserved("systemReserved", k.SystemReserved)...)
	problems = append(problems, reserved("kubeReserved", k.KubeReserved)...)
	problems = append(problems, thresholds("evictionHard", k.EvictionHard)...)
	problems = append(problems, thresholds("evictionSoft", k.EvictionSoft)...)
	problems = append(problems, gracePeriods(k)...)
	problems = append(problems, numbers(k)...)
	mistyped := k.Mistyped()
	for _, name := range slices.Sorted(maps.Keys(k.Other)) {
		if name == "registerWithTaints" {
			problems = append(problems, "registerWithTaints: taints belong into spec.template.spec.taints or startupTaints of the NodePool")
		} else if problem := checkKubeletField(name, k.Other[name].Raw); problem != "" {
			problems = append(problems, problem)
		} else if slices.Contains(mistyped, name) {
			problems = append(problems, fmt.Sprintf("%s: %s is not in the range or of the type of the field", name, k.Other[name].Raw))
		}
	}
	return problems
}

func reserved(field string, entries map[string]string) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, key) {
			problems = append(problems, fmt.Sprintf("%s: %q is not one of cpu, memory, ephemeral-storage, pid", field, key))
		}
		if strings.HasPrefix(entries[key], "-") {
			problems = append(problems, fmt.Sprintf("%s[%s]: %s is negative", field, key, entries[key]))
		}
	}
	return problems
}

// signals are the kubelet's eviction signals
// (https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/#eviction-signals).
var signals = []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available",
	"imagefs.inodesFree", "pid.available"}

func thresholds(field string, entries map[string]string) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if !slices.Contains(signals, key) {
			problems = append(problems, fmt.Sprintf("%s: %q is none of %s", field, key, strings.Join(signals, ", ")))
		}
		if !validThreshold(entries[key]) {
			problems = append(problems, fmt.Sprintf("%s[%s]: %q is neither a percentage from 0%% to 100%% nor a quantity such as 500Mi",
				field, key, entries[key]))
		}
	}
	return problems
}

func validThreshold(text string) bool {
	if percentage, ok := strings.CutSuffix(text, "%"); ok {
		number, err := strconv.ParseFloat(percentage, 64)
		return err == nil && number >= 0 && number <= 100
	}
	amount, err := karpv1.ParseQuantity(text)
	return err == nil && amount.Sign() >= 0
}

func gracePeriods(k *awsv1.KubeletConfiguration) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(k.EvictionSoft)) {
		if _, ok := k.EvictionSoftGracePeriod[key]; !ok {
			problems = append(problems, fmt.Sprintf("evictionSoft: %s needs an entry in evictionSoftGracePeriod", key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.EvictionSoftGracePeriod)) {
		if _, ok := k.EvictionSoft[key]; !ok {
			problems = append(problems, fmt.Sprintf("evictionSoftGracePeriod: %s needs an entry in evictionSoft", key))
		}
		if period, err := time.ParseDuration(k.EvictionSoftGracePeriod[key]); err != nil || period < 0 {
			problems = append(problems, fmt.Sprintf("evictionSoftGracePeriod[%s]: %q is not a duration such as 1m30s, or is negative",
				key, k.EvictionSoftGracePeriod[key]))
		}
	}
	return problems
}

func numbers(k *awsv1.KubeletConfiguration) []string {
	var problems []string
	if k.PodsPerCore != nil && *k.PodsPerCore < 0 {
		problems = append(problems, fmt.Sprintf("podsPerCore: %d is negative", *k.PodsPerCore))
	}
	percentage := func(field string, value *int32) {
		if value != nil && (*value < 0 || *value > 100) {
			problems = append(problems, fmt.Sprintf("%s: %d is not from 0 to 100", field, *value))
		}
	}
	percentage("imageGCHighThresholdPercent", k.ImageGCHighThresholdPercent)
	percentage("imageGCLowThresholdPercent", k.ImageGCLowThresholdPercent)
	if high, low := k.ImageGCHighThresholdPercent, k.ImageGCLowThresholdPercent; high != nil && low != nil && *high <= *low {
		problems = append(problems, fmt.Sprintf("imageGCHighThresholdPercent: %d is not greater than imageGCLowThresholdPercent: %d",
			*high, *low))
	}
	return problems
}

// unsupported returns the settings that a family cannot pass on. AL2023 accepts a whole configuration; with Custom it
// is up to the user.
func unsupported(family awsv1.Family, k *awsv1.KubeletConfiguration) []string {
	if family == awsv1.FamilyAL2023 || family == awsv1.FamilyCustom {
		return nil
	}
	var problems []string
	if len(k.ClusterDNS) > 1 {
		problems = append(problems, fmt.Sprintf("clusterDNS: %s takes one address", family))
	}
	if family == awsv1.FamilyBottlerocket && k.PodsPerCore != nil {
		problems = append(problems, "podsPerCore: Bottlerocket does not support it; use maxPods")
	}
	for _, name := range slices.Sorted(maps.Keys(k.Other)) {
		problems = append(problems, fmt.Sprintf("%s: cannot be passed to %s; use AL2023, or userData", name, family))
	}
	return problems
}

// checkKubeletField returns the problem of a field of a kubelet configuration, or an empty string.
func checkKubeletField(name string, value json.RawMessage) string {
	switch kind := kubeletField(name); {
	case kind == "":
		return fmt.Sprintf("%s: not a field of kubelet.config.k8s.io/v1beta1 (Kubernetes 1.36)", name)
	case !isKind(kind, value):
		return fmt.Sprintf("%s: %s is not of type %s", name, value, kind)
	}
	return ""
}

// kubeletField returns the kind of a field's value, and an empty string for an unknown field.
func kubeletField(name string) string {
	for line := range strings.Lines(kubeletFields) {
		if field, kind, _ := strings.Cut(strings.TrimSpace(line), " "); field == name {
			return kind
		}
	}
	return ""
}

// isKind reports whether the JSON is absent, null or of the kind.
func isKind(kind string, value json.RawMessage) bool {
	if len(value) == 0 {
		return true
	}
	into := map[string]func() any{
		"string":   func() any { return new(string) },
		"boolean":  func() any { return new(bool) },
		"integer":  func() any { return new(int64) },
		"number":   func() any { return new(float64) },
		"duration": func() any { return new(metav1.Duration) },
		"texts":    func() any { return new([]string) },
		"strings":  func() any { return new(map[string]string) },
		"list":     func() any { return new([]any) },
		"map":      func() any { return new(map[string]any) },
	}[kind]
	return into != nil && json.Unmarshal(value, into()) == nil
}

// amounts returns the entries that are amounts. An expression that has no result for the machine counts as unset.
func amounts(entries map[string]string) map[string]string {
	known := awsv1.Reserved(entries)
	kept := map[string]string{}
	for name, text := range entries {
		if _, ok := known[name]; ok {
			kept[name] = text
		}
	}
	return kept
}

// joined returns the entries as key, between, value, separated by commas, sorted by key.
func joined(entries map[string]string, between string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		pairs = append(pairs, key+between+entries[key])
	}
	return strings.Join(pairs, ",")
}
