package discovery

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// release is an SSM parameter with the image ID of a release, and the machines that the image is for: one list of
// requirements per kind of machine.
type release struct {
	parameter string
	fits      [][]corev1.NodeSelectorRequirement
}

// UnsupportedAliasError means that an alias refers to images that AWS does not publish for the cluster's version.
type UnsupportedAliasError struct {
	Alias      string
	Kubernetes string // version of the cluster, such as 1.33
	Remedy     string
}

func (e *UnsupportedAliasError) Error() string {
	return fmt.Sprintf("spec.amiSelectorTerms: there are no images %s for Kubernetes %s; %s", e.Alias, e.Kubernetes, e.Remedy)
}

// Requirements that distinguish the machines of the variants of an image.
var (
	withoutAccelerator = []corev1.NodeSelectorRequirement{lacks(awsv1.LabelInstanceAcceleratorCount), lacks(awsv1.LabelInstanceGPUCount)}
	withGPU            = []corev1.NodeSelectorRequirement{has(awsv1.LabelInstanceGPUCount)}
	withNeuron         = []corev1.NodeSelectorRequirement{has(awsv1.LabelInstanceAcceleratorCount)}
)

func lacks(key string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}
}

func has(key string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// releasesOf returns the parameters with the images of an alias for a minor version of Kubernetes. Errors:
// *UnsupportedAliasError. https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html,
// retrieve-ami-id-bottlerocket.html, retrieve-windows-ami-id.html
func releasesOf(family awsv1.Family, version, kubernetes string) ([]release, error) {
	minor, err := minorOf(kubernetes)
	if err != nil {
		return nil, err
	}
	switch family {
	case awsv1.FamilyAL2:
		if minor >= 33 {
			return nil, &UnsupportedAliasError{"al2@" + version, kubernetes, "use al2023@latest"}
		}
		return al2Releases(version, kubernetes), nil
	case awsv1.FamilyAL2023:
		return al2023Releases(version, kubernetes), nil
	case awsv1.FamilyBottlerocket:
		return bottlerocketReleases(version, kubernetes), nil
	case awsv1.FamilyWindows2025:
		if minor < 35 {
			return nil, &UnsupportedAliasError{"windows2025@" + version, kubernetes, "use windows2022@latest"}
		}
	}
	return windowsReleases(family, kubernetes), nil
}

// minorOf returns the minor version: 33 for 1.33.
func minorOf(kubernetes string) (int, error) {
	major, minor, ok := strings.Cut(kubernetes, ".")
	n, err := strconv.Atoi(minor)
	if !ok || major != "1" || err != nil || n < 0 {
		return 0, fmt.Errorf("version of Kubernetes: is %q, want one such as 1.33", kubernetes)
	}
	return n, nil
}

func al2Releases(version, kubernetes string) []release {
	path := func(folder, kind string) string {
		name := "recommended"
		if version != "latest" {
			name = fmt.Sprintf("amazon-eks-%snode-%s-%s", kind, kubernetes, version)
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/%s/image_id", kubernetes, folder, name)
	}
	return []release{
		{path("amazon-linux-2", ""), [][]corev1.NodeSelectorRequirement{withoutAccelerator}},
		{path("amazon-linux-2-arm64", "arm64-"), [][]corev1.NodeSelectorRequirement{withoutAccelerator}},
		{path("amazon-linux-2-gpu", "gpu-"), [][]corev1.NodeSelectorRequirement{withNeuron, withGPU}},
	}
}

func al2023Releases(version, kubernetes string) []release {
	path := func(arch, variant string) string {
		name := "recommended"
		if version != "latest" {
			name = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", arch, variant, kubernetes, version)
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", kubernetes, arch, variant, name)
	}
	return []release{
		{path("x86_64", "standard"), [][]corev1.NodeSelectorRequirement{withoutAccelerator}},
		{path("arm64", "standard"), [][]corev1.NodeSelectorRequirement{withoutAccelerator}},
		{path("x86_64", "nvidia"), [][]corev1.NodeSelectorRequirement{withGPU}},
		{path("arm64", "nvidia"), [][]corev1.NodeSelectorRequirement{withGPU}},
		{path("x86_64", "neuron"), [][]corev1.NodeSelectorRequirement{withNeuron}},
	}
}

func bottlerocketReleases(version, kubernetes string) []release {
	path := func(variant, arch string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, variant, arch, strings.TrimLeft(version, "v"))
	}
	return []release{
		{path("", "x86_64"), [][]corev1.NodeSelectorRequirement{withoutAccelerator, withNeuron}},
		{path("", "arm64"), [][]corev1.NodeSelectorRequirement{withoutAccelerator}},
		{path("-nvidia", "x86_64"), [][]corev1.NodeSelectorRequirement{withGPU}},
		{path("-nvidia", "arm64"), [][]corev1.NodeSelectorRequirement{withGPU}},
	}
}

// windowsBuilds are values of node.kubernetes.io/windows-build.
var windowsBuilds = map[awsv1.Family]string{
	awsv1.FamilyWindows2019: "10.0.17763",
	awsv1.FamilyWindows2022: "10.0.20348",
	awsv1.FamilyWindows2025: "10.0.26100",
}

func windowsReleases(family awsv1.Family, kubernetes string) []release {
	path := fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id",
		strings.TrimPrefix(string(family), "Windows"), kubernetes)
	build := []corev1.NodeSelectorRequirement{in(corev1.LabelOSStable, "windows"), in(corev1.LabelWindowsBuild, windowsBuilds[family])}
	return []release{{path, [][]corev1.NodeSelectorRequirement{build}}}
}
