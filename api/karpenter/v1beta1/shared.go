package v1beta1

// NodeClassReference names the provider's object that configures nodes.
type NodeClassReference struct {
	// APIVersion of the node class: its group and any version, for example karpenter.k8s.aws/v1beta1. Unset:
	// the group of EC2NodeClass.
	// +kubebuilder:validation:Pattern:=`^[^/]*(/[^/]*)?$`
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the node class. Unset: EC2NodeClass.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the node class.
	// +kubebuilder:validation:XValidation:message="name must not be empty",rule="self != ''"
	// +required
	Name string `json:"name"`
}

// KubeletConfiguration is a subset of the kubelet's configuration, kubelet.config.k8s.io/v1beta1
// (https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/).
// +kubebuilder:validation:XValidation:message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent"
// +kubebuilder:validation:XValidation:message="each key of evictionSoft needs one in evictionSoftGracePeriod",rule="!has(self.evictionSoft) || self.evictionSoft.all(k, has(self.evictionSoftGracePeriod) && k in self.evictionSoftGracePeriod)"
// +kubebuilder:validation:XValidation:message="each key of evictionSoftGracePeriod needs one in evictionSoft",rule="!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(k, has(self.evictionSoft) && k in self.evictionSoft)"
type KubeletConfiguration struct {
	// ClusterDNS lists the addresses of the cluster's DNS servers. Unset: the address of the Service kube-dns.
	// +listType=atomic
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is the maximum number of pods on a node.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
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
}
