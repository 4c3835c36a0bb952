package kubelet

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

const (
	// fakeNode is the annotation of the nodes that kwok's controller keeps ready.
	fakeNode = "kwok.x-k8s.io/node"
	mib      = int64(1) << 20
	gib      = int64(1) << 30
	// visible is the fraction of a machine's memory that its kernel reports. Firmware and kernel reserve the rest. The
	// value is an approximation: the real fraction differs from type to type.
	visible = 0.96
)

// providerID returns the provider ID in the cloud controller manager's format.
func providerID(i awssim.Instance) string { return "aws:///" + i.Zone + "/" + i.ID }

// nodeOf returns the Node that the instance registers.
func nodeOf(i awssim.Instance, c Config) *corev1.Node {
	arch := map[string]string{"x86_64": "amd64", "arm64": "arm64"}[i.Architecture]
	system := "linux"
	if strings.HasPrefix(i.ImageFamily, "windows") {
		system = "windows"
	}
	labels := maps.Clone(c.Labels)
	maps.Copy(labels, map[string]string{ // labels of the kubelet
		corev1.LabelHostname: i.PrivateDNSName, corev1.LabelOSStable: system, corev1.LabelArchStable: arch,
	})
	if build := windowsBuilds[i.ImageFamily]; build != "" {
		labels[corev1.LabelWindowsBuild] = build
	}
	maps.Copy(labels, map[string]string{ // labels of the cloud controller manager
		corev1.LabelInstanceTypeStable: i.Type, corev1.LabelTopologyRegion: i.Region, corev1.LabelTopologyZone: i.Zone,
		"topology.k8s.aws/zone-id": i.ZoneID,
	})
	capacity := capacityOf(i, c)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: i.PrivateDNSName, Labels: labels, Annotations: map[string]string{fakeNode: "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: providerID(i), Taints: c.Taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatableOf(capacity, i, c), Phase: corev1.NodePending,
			NodeInfo: corev1.NodeSystemInfo{Architecture: arch, OperatingSystem: system, KubeletVersion: "v" + i.Kubernetes + ".0"},
		},
	}
}

// windowsBuilds are the builds that kubelets on Windows report.
// https://kubernetes.io/docs/concepts/windows/intro/#windows-os-version-support
var windowsBuilds = map[string]string{"windows2019": "10.0.17763", "windows2022": "10.0.20348", "windows2025": "10.0.26100"}

func capacityOf(i awssim.Instance, c Config) corev1.ResourceList {
	pods := c.MaxPods
	if pods == 0 {
		pods = podsByAddresses(i)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(i.VCPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(Memory(i.MemoryMiB), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(max(i.PodsGiB, 1))*gib, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
	}
	if i.GPUs > 0 { // as reported by the device plugin
		capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(i.GPUs), resource.DecimalSI)
	}
	return capacity
}

// Memory returns the memory in bytes that a kubelet reports on a machine with the given memory in MiB.
func Memory(mebibytes int) int64 { return int64(float64(mebibytes)*visible) * mib }

// podsByAddresses returns the number of pods that get an address of the VPC.
// https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html
func podsByAddresses(i awssim.Instance) int64 { return int64(i.ENIs*(i.IPv4PerENI-1) + 2) }

// Allocatable returns the allocatable resources that the instance's node reports with the configuration.
func Allocatable(i awssim.Instance, c Config) corev1.ResourceList {
	return allocatableOf(capacityOf(i, c), i, c)
}

// allocatableOf subtracts what the bootstrap of the image reserves, unless the user data has other values: 6% of the
// first core, 1% of the second, 0.5% of the next two and 0.25% of the rest; 255 MiB and 11 MiB for each pod with an
// address; 1 GiB of storage; and the eviction thresholds.
func allocatableOf(capacity corev1.ResourceList, i awssim.Instance, c Config) corev1.ResourceList {
	counted := podsByAddresses(i)
	if i.ImageFamily == "bottlerocket" { // it counts the pods that it may run
		counted = capacity.Pods().Value()
	}
	reserved := map[corev1.ResourceName]int64{
		corev1.ResourceCPU:              coresReserved(i.VCPUs),
		corev1.ResourceMemory:           (255 + 11*counted) * mib,
		corev1.ResourceEphemeralStorage: gib,
	}
	for name, amount := range c.KubeReserved {
		reserved[corev1.ResourceName(name)] = amountOf(corev1.ResourceName(name), amount)
	}
	for name, amount := range c.SystemReserved {
		reserved[corev1.ResourceName(name)] += amountOf(corev1.ResourceName(name), amount)
	}
	storage := capacity[corev1.ResourceEphemeralStorage]
	memory := capacity[corev1.ResourceMemory]
	reserved[corev1.ResourceMemory] += threshold(c.EvictionHard["memory.available"], memory.Value(), 100*mib)
	reserved[corev1.ResourceEphemeralStorage] += threshold(c.EvictionHard["nodefs.available"], storage.Value(), storage.Value()/10)
	free := capacity.DeepCopy()
	for name, amount := range reserved {
		quantity, has := free[name]
		if !has {
			continue
		}
		if name == corev1.ResourceCPU {
			free[name] = *resource.NewMilliQuantity(max(0, quantity.MilliValue()-amount), resource.DecimalSI)
			continue
		}
		free[name] = *resource.NewQuantity(max(0, quantity.Value()-amount), quantity.Format)
	}
	return free
}

// coresReserved returns the reservation in millicores.
func coresReserved(cores int) int64 {
	total := 0.0
	for core := range cores {
		switch {
		case core == 0:
			total += 60
		case core == 1:
			total += 10
		case core < 4:
			total += 5
		default:
			total += 2.5
		}
	}
	return int64(math.Floor(total))
}

// amountOf returns the amount in millicores for cpu, otherwise in units.
func amountOf(name corev1.ResourceName, text string) int64 {
	quantity := resource.MustParse(text) // validated by Config.check
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// threshold parses an eviction threshold: an amount, or a percentage of the whole.
func threshold(text string, whole, otherwise int64) int64 {
	if percent, is := strings.CutSuffix(text, "%"); is {
		if part, err := strconv.ParseFloat(percent, 64); err == nil {
			return int64(math.Ceil(float64(whole) * part / 100))
		}
	}
	if quantity, err := resource.ParseQuantity(text); text != "" && err == nil {
		return quantity.Value()
	}
	return otherwise
}

// joins returns why the machine would not join the cluster, or nil if it would.
func joins(i awssim.Instance, c Config, cluster Cluster) error {
	switch {
	case c.Cluster != cluster.Name:
		return fmt.Errorf("its user data names the cluster %q, and this is %q", c.Cluster, cluster.Name)
	case c.Endpoint != cluster.Endpoint:
		return fmt.Errorf("its user data names the endpoint %q, and the API server is at %q", c.Endpoint, cluster.Endpoint)
	case c.Authority != cluster.Authority:
		return fmt.Errorf("its user data has another certificate authority than the API server")
	case i.Profile == "":
		return fmt.Errorf("it has no instance profile, so it cannot prove who it is")
	}
	return nil
}
