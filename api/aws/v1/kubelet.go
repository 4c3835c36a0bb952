package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// KubeletConfiguration is a subset of the kubelet's configuration, kubelet.config.k8s.io/v1beta1
// (https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/). The named fields affect the capacity of a
// node, or are supported by every image family. Other fields are passed unchanged to image families that accept a
// complete configuration (AL2023).
//
// MaxPods and the values of KubeReserved and SystemReserved may also be CEL expressions, if the feature gate NodeClassCEL
// is on.
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent"
// +kubebuilder:validation:XValidation:message="each key of evictionSoft needs one in evictionSoftGracePeriod",rule="!has(self.evictionSoft) || self.evictionSoft.all(k, has(self.evictionSoftGracePeriod) && k in self.evictionSoftGracePeriod)"
// +kubebuilder:validation:XValidation:message="each key of evictionSoftGracePeriod needs one in evictionSoft",rule="!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(k, has(self.evictionSoft) && k in self.evictionSoft)"
type KubeletConfiguration struct {
	// ClusterDNS lists the addresses of the cluster's DNS servers. Unset: the address of the Service kube-dns.
	// +listType=atomic
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is the maximum number of pods on a node. Unset: limited by the number of IP addresses of the
	// instance type.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:message="maxPods must be zero or greater",rule="type(self) == string || self >= 0"
	// +optional
	MaxPods *intstr.IntOrString `json:"maxPods,omitempty"`
	// PodsPerCore is the maximum number of pods per vCPU. 0: no limit.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved is the amount of each resource that is reserved for system daemons. Keys: cpu, memory,
	// ephemeral-storage, pid.
	// +kubebuilder:validation:XValidation:message="keys of systemReserved are cpu, memory, ephemeral-storage and pid",rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])"
	// +kubebuilder:validation:XValidation:message="values of systemReserved must not be negative",rule="self.all(k, !self[k].startsWith('-'))"
	// +optional
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeReserved is the amount of each resource that is reserved for the kubelet and the container runtime.
	// Keys: cpu, memory, ephemeral-storage, pid.
	// +kubebuilder:validation:XValidation:message="keys of kubeReserved are cpu, memory, ephemeral-storage and pid",rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])"
	// +kubebuilder:validation:XValidation:message="values of kubeReserved must not be negative",rule="self.all(k, !self[k].startsWith('-'))"
	// +optional
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard maps eviction signals to amounts or percentages. Below them, the kubelet evicts pods
	// immediately.
	// +kubebuilder:validation:XValidation:message="keys of evictionHard are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available",rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])"
	// +optional
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// EvictionSoft maps eviction signals to amounts or percentages. Below them, the kubelet evicts pods after
	// the time in evictionSoftGracePeriod.
	// +kubebuilder:validation:XValidation:message="keys of evictionSoft are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available",rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])"
	// +optional
	EvictionSoft map[string]string `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod maps each eviction signal of evictionSoft to a duration ("1m30s").
	// +kubebuilder:validation:XValidation:message="values of evictionSoftGracePeriod must be durations such as 1m30s, and not negative",rule="self.all(k, duration(self[k]) >= duration('0s'))"
	// +kubebuilder:validation:XValidation:message="keys of evictionSoftGracePeriod are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available",rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])"
	// +optional
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod is the maximum grace period, in seconds, of a pod that is evicted by a soft
	// eviction threshold.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent is the percentage of disk usage above which the kubelet deletes unused
	// images, 0 to 100.
	// +kubebuilder:validation:Minimum:=0
	// +kubebuilder:validation:Maximum:=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the percentage of disk usage at which the kubelet stops deleting unused
	// images, 0 to 100.
	// +kubebuilder:validation:Minimum:=0
	// +kubebuilder:validation:Maximum:=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota enables the enforcement of the CPU limits of containers.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`

	// Other holds all other fields by name, and named fields whose value has the wrong type. CRDs of other
	// implementations accept such values, and one class that cannot be decoded would make the whole list of
	// classes unreadable.
	Other map[string]apiextensionsv1.JSON `json:"-"`
}

// namedKubelet has the named fields without the methods of KubeletConfiguration.
// +kubebuilder:object:generate=false
type namedKubelet KubeletConfiguration

// UnmarshalJSON decodes the named fields, and keeps the others in Other.
func (k *KubeletConfiguration) UnmarshalJSON(data []byte) error {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("reading a kubelet configuration: %w", err)
	}
	*k = KubeletConfiguration{}
	for name, value := range all {
		if slices.Contains(namedFields[:], name) && k.read(name, value) == nil {
			continue
		}
		if k.Other == nil {
			k.Other = map[string]apiextensionsv1.JSON{}
		}
		var other apiextensionsv1.JSON
		if err := other.UnmarshalJSON(value); err != nil {
			return fmt.Errorf("reading %s of a kubelet configuration: %w", name, err)
		}
		k.Other[name] = other
	}
	return nil
}

// read decodes one named field. On an error it changes nothing.
func (k *KubeletConfiguration) read(name string, value json.RawMessage) error {
	field, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return err
	}
	named := namedKubelet(*k)
	if err := json.Unmarshal(field, &named); err != nil {
		return err
	}
	*k = KubeletConfiguration(named)
	return nil
}

// Mistyped returns the sorted names of the named fields that are in Other because their values have the wrong
// type.
func (k *KubeletConfiguration) Mistyped() []string {
	var names []string
	for _, name := range namedFields {
		if _, ok := k.Other[name]; ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// namedFields lists the wire names of the named fields. A test compares them with the type.
var namedFields = [...]string{
	"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft",
	"evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent",
	"cpuCFSQuota",
}

// MarshalJSON encodes all fields, ordered by name.
func (k KubeletConfiguration) MarshalJSON() ([]byte, error) {
	fields, err := k.Fields()
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// Fields returns all fields that are set, by wire name, as encoding/json decodes them (numbers as json.Number).
// If Other has a field with the name of a named field, the named field applies.
func (k KubeletConfiguration) Fields() (map[string]any, error) {
	fields := map[string]any{}
	for name, value := range k.Other {
		var decoded any
		if len(value.Raw) == 0 { // null in JSON
			fields[name] = nil
			continue
		}
		if err := decode(value.Raw, &decoded); err != nil {
			return nil, fmt.Errorf("reading %s of a kubelet configuration: %w", name, err)
		}
		fields[name] = decoded
	}
	data, err := json.Marshal(namedKubelet(k))
	if err != nil {
		return nil, fmt.Errorf("writing a kubelet configuration: %w", err)
	}
	named := map[string]any{}
	if err := decode(data, &named); err != nil {
		return nil, fmt.Errorf("reading a kubelet configuration: %w", err)
	}
	maps.Copy(fields, named)
	return fields, nil
}

func decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// MaxPodsNumber returns MaxPods if it is a number. ok is false if it is unset or an expression.
func (k *KubeletConfiguration) MaxPodsNumber() (pods int32, ok bool) {
	switch {
	case k == nil || k.MaxPods == nil:
		return 0, false
	case k.MaxPods.Type == intstr.Int:
		return k.MaxPods.IntVal, true
	}
	number, err := strconv.ParseInt(k.MaxPods.StrVal, 10, 32)
	return int32(number), err == nil && number >= 0
}

// Reserved returns the entries of KubeReserved or SystemReserved that are amounts. It omits expressions.
func Reserved(entries map[string]string) map[string]resource.Quantity {
	amounts := map[string]resource.Quantity{}
	for name, text := range entries {
		if amount, err := karpv1.ParseQuantity(text); err == nil {
			amounts[name] = amount
		}
	}
	return amounts
}

// Expression is a setting of the kubelet that is a CEL expression instead of a number or an amount.
// +kubebuilder:object:generate=false
type Expression struct {
	// Field is one of the constants below. Resource is the key in a map, and empty for maxPods.
	Field, Resource string
	Text            string
}

// Fields of the kubelet's settings that may be expressions.
const (
	FieldMaxPods        = "maxPods"
	FieldKubeReserved   = "kubeReserved"
	FieldSystemReserved = "systemReserved"
)

// Path returns the path of the setting in the class, such as spec.kubelet.kubeReserved.cpu.
func (e Expression) Path() string {
	path := "spec.kubelet." + e.Field
	if e.Resource != "" {
		path += "." + e.Resource
	}
	return path
}

// Expressions returns the settings that are expressions, in the order of their paths.
func (k *KubeletConfiguration) Expressions() []Expression {
	if k == nil {
		return nil
	}
	var list []Expression
	for name, entries := range map[string]map[string]string{FieldKubeReserved: k.KubeReserved, FieldSystemReserved: k.SystemReserved} {
		for key, text := range entries {
			if _, err := karpv1.ParseQuantity(text); err != nil {
				list = append(list, Expression{name, key, text})
			}
		}
	}
	if _, isNumber := k.MaxPodsNumber(); k.MaxPods != nil && !isNumber {
		list = append(list, Expression{Field: FieldMaxPods, Text: k.MaxPods.StrVal})
	}
	slices.SortFunc(list, func(a, b Expression) int { return strings.Compare(a.Path(), b.Path()) })
	return list
}
