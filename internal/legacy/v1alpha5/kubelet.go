package v1alpha5

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// readKubelet reads spec.kubeletConfiguration. It returns nil if it is empty.
func readKubelet(s *section) *awsv1.KubeletConfiguration {
	if s == nil {
		return nil
	}
	if runtime := s.text("containerRuntime"); runtime != "" {
		effect := Changed
		if !strings.EqualFold(runtime, "containerd") {
			effect = Impossible
		}
		s.notes.add(effect, s.at("containerRuntime"), "", "is %s; omitted, because containerd is the only container runtime", runtime)
	}
	k := &awsv1.KubeletConfiguration{
		ClusterDNS:                  s.texts("clusterDNS"),
		PodsPerCore:                 s.count("podsPerCore"),
		SystemReserved:              s.pairs("systemReserved"),
		KubeReserved:                s.pairs("kubeReserved"),
		EvictionHard:                s.pairs("evictionHard"),
		EvictionSoft:                s.pairs("evictionSoft"),
		EvictionSoftGracePeriod:     s.pairs("evictionSoftGracePeriod"),
		EvictionMaxPodGracePeriod:   s.count("evictionMaxPodGracePeriod"),
		ImageGCHighThresholdPercent: s.count("imageGCHighThresholdPercent"),
		ImageGCLowThresholdPercent:  s.count("imageGCLowThresholdPercent"),
		CPUCFSQuota:                 s.flag("cpuCFSQuota"),
	}
	if pods := s.count("maxPods"); pods != nil {
		k.MaxPods = new(intstr.FromInt32(*pods))
	}
	s.rest()
	if sameKubelet(k, nil) {
		return nil
	}
	return k
}

// count returns an integer of 32 bits.
func (s *section) count(name string) *int32 {
	number := s.whole(name)
	if number == nil {
		return nil
	}
	return new(int32(min(*number, math.MaxInt32)))
}

// sameKubelet reports whether two settings have the same JSON. Nil equals empty.
func sameKubelet(a, b *awsv1.KubeletConfiguration) bool {
	text := func(k *awsv1.KubeletConfiguration) []byte {
		if k == nil {
			return []byte("{}")
		}
		data, err := json.Marshal(k)
		if err != nil {
			return nil
		}
		return data
	}
	return bytes.Equal(text(a), text(b))
}

// limitedTo returns the settings with a maximum number of pods if they have none. Zero changes nothing.
func limitedTo(k *awsv1.KubeletConfiguration, pods int32) *awsv1.KubeletConfiguration {
	if pods == 0 || k != nil && k.MaxPods != nil {
		return k
	}
	if k == nil {
		k = &awsv1.KubeletConfiguration{}
	}
	k.MaxPods = new(intstr.FromInt32(pods))
	return k
}
