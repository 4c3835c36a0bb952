package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// KubeletConfiguration is a part of the kubelet's own configuration, kubelet.config.k8s.io/v1beta1
// (https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/). The named fields change what a node can
// hold, or are given to every family of images; the others are passed on as they are to families that take a whole
// configuration (AL2023).
//
// MaxPods and the values of KubeReserved and SystemReserved may also be CEL expressions; those are accepted, and not
// yet acted on.
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent"
// +kubebuilder:validation:XValidation:message="each key of evictionSoft needs one in evictionSoftGracePeriod",rule="!has(self.evictionSoft) || self.evictionSoft.all(k, has(self.evictionSoftGracePeriod) && k in self.evictionSoftGracePeriod)"
// +kubebuilder:validation:XValidation:message="each key of evictionSoftGracePeriod needs one in evictionSoft",rule="!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(k, has(self.evictionSoft) && k in self.evictionSoft)"
type KubeletConfiguration struct {
	// ClusterDNS are the addresses of the cluster's DNS servers. Unset: that of the
	// service kube-dns.
	// +listType=atomic
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is the greatest number of pods on a node. Unset: as many as it has addresses
	// for.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:message="maxPods must be zero or greater",rule="type(self) == string || self >= 0"
	// +optional
	MaxPods *intstr.IntOrString `json:"maxPods,omitempty"`
	// PodsPerCore is the greatest number of pods per vCPU; zero is no limit.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved are amounts kept for daemons of the operating system.
	// +kubebuilder:validation:XValidation:message="keys of systemReserved are cpu, memory, ephemeral-storage and pid",rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])"
	// +kubebuilder:validation:XValidation:message="values of systemReserved must not be negative",rule="self.all(k, !self[k].startsWith('-'))"
	// +optional
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeReserved are amounts kept for the kubelet and the container runtime.
	// +kubebuilder:validation:XValidation:message="keys of kubeReserved are cpu, memory, ephemeral-storage and pid",rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])"
	// +kubebuilder:validation:XValidation:message="values of kubeReserved must not be negative",rule="self.all(k, !self[k].startsWith('-'))"
	// +optional
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard are amounts, or percentages, below which the kubelet evicts at once.
	// +kubebuilder:validation:XValidation:message="keys of evictionHard are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available",rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])"
	// +optional
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// EvictionSoft are amounts, or percentages, below which the kubelet evicts after the
	// time in EvictionSoftGracePeriod.
	// +kubebuilder:validation:XValidation:message="keys of evictionSoft are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available",rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])"
	// +optional
	EvictionSoft map[string]string `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod are the times ("1m30s") for EvictionSoft.
	// +kubebuilder:validation:XValidation:message="values of evictionSoftGracePeriod must be durations such as 1m30s, and not negative",rule="self.all(k, duration(self[k]) >= duration('0s'))"
	// +kubebuilder:validation:XValidation:message="keys of evictionSoftGracePeriod are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available",rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])"
	// +optional
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod is the longest time in seconds that a pod gets to end when
	// a soft limit evicts it.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent of disk usage above which images are removed.
	// +kubebuilder:validation:Minimum:=0
	// +kubebuilder:validation:Maximum:=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent of disk usage down to which images are removed.
	// +kubebuilder:validation:Minimum:=0
	// +kubebuilder:validation:Maximum:=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota says whether CPU limits of containers are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`

	// Other are all further fields, by name, and named ones whose value is of another type: definitions of the CRD other
	// than ours let those pass, and one class that cannot be read would make all classes unreadable.
	Other map[string]apiextensionsv1.JSON `json:"-"`
}

// namedKubelet are the named fields without the methods of KubeletConfiguration.
// +kubebuilder:object:generate=false
type namedKubelet KubeletConfiguration

// UnmarshalJSON reads the named fields, and keeps the others in Other.
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

// read sets one named field, or leaves all as it was.
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

// Mistyped are the named fields that are in Other, because their values are of another type, sorted.
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

// namedFields are the wire names of the named fields; a test compares them with the type.
var namedFields = [...]string{
	"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft",
	"evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent",
	"cpuCFSQuota",
}

// MarshalJSON writes all fields, ordered by name.
func (k KubeletConfiguration) MarshalJSON() ([]byte, error) {
	fields, err := k.Fields()
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// Fields are all fields that are set, by wire name, as encoding/json decodes them (numbers as json.Number). A named
// field counts, should Other have one of its name.
func (k KubeletConfiguration) Fields() (map[string]any, error) {
	fields := map[string]any{}
	for name, value := range k.Other {
		var decoded any
		if len(value.Raw) == 0 { // null, as it is decoded
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

// MaxPodsNumber is MaxPods, when it is set to a number and not to an expression.
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

// Reserved are the entries of KubeReserved or SystemReserved that are amounts; those that are expressions are left out.
func Reserved(entries map[string]string) map[string]resource.Quantity {
	amounts := map[string]resource.Quantity{}
	for name, text := range entries {
		if amount, err := karpv1.ParseQuantity(text); err == nil {
			amounts[name] = amount
		}
	}
	return amounts
}

// Expressions are the paths, from the spec on, of settings that are not numbers or amounts but CEL expressions, sorted.
func (k *KubeletConfiguration) Expressions() []string {
	if k == nil {
		return nil
	}
	var paths []string
	if _, isNumber := k.MaxPodsNumber(); k.MaxPods != nil && !isNumber {
		paths = append(paths, "kubelet.maxPods")
	}
	for name, entries := range map[string]map[string]string{"kubeReserved": k.KubeReserved, "systemReserved": k.SystemReserved} {
		for key, text := range entries {
			if _, err := karpv1.ParseQuantity(text); err != nil {
				paths = append(paths, "kubelet."+name+"."+key)
			}
		}
	}
	slices.Sort(paths)
	return paths
}
