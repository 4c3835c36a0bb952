package v1beta1

// NodeClassReference names the provider's object that says how nodes are made there.
type NodeClassReference struct {
	// APIVersion of the node class, its group and any version, for example
	// karpenter.k8s.aws/v1beta1. Unset: of an EC2NodeClass.
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

// KubeletConfiguration is a part of the kubelet's own configuration, kubelet.config.k8s.io/v1beta1
// (https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/).
// +kubebuilder:validation:XValidation:message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent"
// +kubebuilder:validation:XValidation:message="each key of evictionSoft needs one in evictionSoftGracePeriod",rule="!has(self.evictionSoft) || self.evictionSoft.all(k, has(self.evictionSoftGracePeriod) && k in self.evictionSoftGracePeriod)"
// +kubebuilder:validation:XValidation:message="each key of evictionSoftGracePeriod needs one in evictionSoft",rule="!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(k, has(self.evictionSoft) && k in self.evictionSoft)"
type KubeletConfiguration struct {
	// ClusterDNS are the addresses of the cluster's DNS servers. Unset: that of the
	// service kube-dns.
	// +listType=atomic
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is the greatest number of pods on a node.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
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
}
