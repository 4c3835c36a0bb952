package awssim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// image is an AMI.
type image struct {
	id, name, owner, arch string
	created, deprecated   time.Time // deprecated is zero for never
	devices               []imageDevice
	tags                  map[string]string
	variant               variant
	release               string
}

// imageDevice is a volume of an image, created from a snapshot of the given GiB.
type imageDevice struct {
	name, snapshot string
	gib            int
}

// variant is one image of a release: a family for a Kubernetes version, an architecture and an accelerator.
type variant struct {
	family, kubernetes, arch, accelerator string
}

// parameter is a value of SSM's public parameters.
type parameter struct {
	value    string
	version  int
	modified time.Time
}

// amazon is the account that publishes EKS's images in most regions.
// https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html has the parameters, but not the account.
const amazon = "602401143452"

// families are the image families that ReleaseImages supports.
var families = []string{"al2", "al2023", "bottlerocket", "windows2019", "windows2022", "windows2025"}

// kubernetesVersions are the versions with images.
var kubernetesVersions = []string{"1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"}

// variantsOf returns the images of a release of a family for a version. EKS has AL2 up to 1.32.
func variantsOf(family, kubernetes string) []variant {
	switch family {
	case "al2":
		if kubernetes > "1.32" {
			return nil
		}
		return []variant{{family, kubernetes, "x86_64", ""}, {family, kubernetes, "arm64", ""}, {family, kubernetes, "x86_64", "gpu"}}
	case "al2023":
		return []variant{{family, kubernetes, "x86_64", "standard"}, {family, kubernetes, "arm64", "standard"},
			{family, kubernetes, "x86_64", "nvidia"}, {family, kubernetes, "arm64", "nvidia"}, {family, kubernetes, "x86_64", "neuron"}}
	case "bottlerocket":
		return []variant{{family, kubernetes, "x86_64", ""}, {family, kubernetes, "arm64", ""},
			{family, kubernetes, "x86_64", "nvidia"}, {family, kubernetes, "arm64", "nvidia"}}
	}
	return []variant{{family, kubernetes, "x86_64", ""}}
}

// stockImages creates two releases of each family, a month apart.
func (c *Cloud) stockImages(now time.Time) {
	for k, date := range []string{"20260820", "20260920"} {
		at, err := time.Parse("20060102", date)
		if err != nil || at.After(now) {
			at = now.AddDate(0, k-2, 0)
		}
		for _, family := range families {
			version := "v" + date
			if family == "bottlerocket" {
				version = fmt.Sprintf("1.%d.0", 45+k)
			}
			c.release(family, version, at)
		}
	}
}

// ReleaseImages publishes a release of a family (al2, al2023, bottlerocket, windows2019, windows2022, windows2025) for
// all Kubernetes versions: new images, to which the parameters of the latest release then refer. Versions have the form
// v20261120, those of Bottlerocket 1.47.0. It returns the image IDs.
func (c *Cloud) ReleaseImages(family, version string) ([]string, error) {
	if !slices.Contains(families, family) {
		return nil, fmt.Errorf("image family %q: must be one of %v", family, families)
	}
	var ids []string
	c.locked(func(now time.Time) { ids = c.release(family, version, now) })
	return ids, nil
}

// DeprecateImage marks an image as deprecated from now on.
func (c *Cloud) DeprecateImage(id string) error {
	err := fmt.Errorf("no image %q", id)
	c.locked(func(now time.Time) {
		if i := c.image(id); i != nil {
			i.deprecated, err = now, nil
		}
	})
	return err
}

// AddImage adds an image that the account owns and returns its ID.
func (c *Cloud) AddImage(name, arch string, tags map[string]string) string {
	var id string
	c.locked(func(now time.Time) {
		i := c.newImage(variant{arch: arch}, name, now)
		i.owner, i.tags, id = c.opts.AccountID, tags, i.id
	})
	return id
}

func (c *Cloud) image(id string) *image {
	k := slices.IndexFunc(c.images, func(i *image) bool { return i.id == id })
	if k < 0 {
		return nil
	}
	return c.images[k]
}

func (c *Cloud) release(family, version string, at time.Time) []string {
	var ids []string
	for _, kubernetes := range kubernetesVersions {
		for _, v := range variantsOf(family, kubernetes) {
			i := c.newImage(v, imageName(v, version), at)
			i.release = version
			ids = append(ids, i.id)
			for _, path := range parameterPaths(v, version) {
				c.setParameter(path+"/image_id", i.id, at)
				if v.family == "bottlerocket" {
					c.setParameter(path+"/image_version", version, at)
				} else {
					c.setParameter(path+"/image_name", i.name, at)
				}
			}
		}
	}
	return ids
}

func (c *Cloud) setParameter(path, value string, at time.Time) {
	c.parameters[path] = parameter{value, c.parameters[path].version + 1, at}
}

func (c *Cloud) newImage(v variant, name string, at time.Time) *image {
	i := &image{id: c.newID("ami"), name: name, owner: amazon, arch: v.arch, created: at, variant: v, tags: map[string]string{}}
	i.devices = []imageDevice{{"/dev/xvda", c.newID("snap"), 20}}
	switch {
	case v.family == "bottlerocket":
		i.devices = []imageDevice{{"/dev/xvda", c.newID("snap"), 2}, {"/dev/xvdb", c.newID("snap"), 20}}
	case strings.HasPrefix(v.family, "windows"):
		i.devices = []imageDevice{{"/dev/sda1", c.newID("snap"), 50}}
	}
	c.images = append(c.images, i)
	return i
}

// imageName returns the name that EKS gives an image.
func imageName(v variant, version string) string {
	switch v.family {
	case "al2":
		kind := map[string]string{"x86_64": "node", "arm64": "arm64-node"}[v.arch]
		if v.accelerator == "gpu" {
			kind = "gpu-node"
		}
		return fmt.Sprintf("amazon-eks-%s-%s-%s", kind, v.kubernetes, version)
	case "al2023":
		return fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", v.arch, v.accelerator, v.kubernetes, version)
	case "bottlerocket":
		name := "aws-k8s-" + v.kubernetes
		if v.accelerator != "" {
			name += "-" + v.accelerator
		}
		return fmt.Sprintf("bottlerocket-%s-%s-v%s-0a1b2c3d", name, map[string]string{"x86_64": "x86_64", "arm64": "aarch64"}[v.arch], version)
	}
	return fmt.Sprintf("Windows_Server-%s-English-Core-EKS_Optimized-%s-%s", strings.TrimPrefix(v.family, "windows"), v.kubernetes, version)
}

// parameterPaths returns the parameters that refer to an image: that of the newest release, and that of its own.
// https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html, retrieve-ami-id-bottlerocket.html,
// retrieve-windows-ami-id.html
func parameterPaths(v variant, version string) []string {
	name := imageName(v, version)
	switch v.family {
	case "al2":
		folder := "amazon-linux-2"
		if v.arch == "arm64" {
			folder += "-arm64"
		} else if v.accelerator != "" {
			folder += "-gpu"
		}
		base := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/", v.kubernetes, folder)
		return []string{base + "recommended", base + name}
	case "al2023":
		base := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", v.kubernetes, v.arch, v.accelerator)
		return []string{base + "recommended", base + name}
	case "bottlerocket":
		base := "/aws/service/bottlerocket/aws-k8s-" + v.kubernetes
		if v.accelerator != "" {
			base += "-" + v.accelerator
		}
		base += "/" + v.arch + "/"
		return []string{base + "latest", base + version, base + version + "-0a1b2c3d"}
	}
	year := strings.TrimPrefix(v.family, "windows")
	return []string{fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s", year, v.kubernetes)}
}
