package v1alpha5

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// familyUbuntu is a family that v1 does not have. It boots like AL2.
const familyUbuntu = "Ubuntu"

// withoutAL2 is the first minor version of Kubernetes without images of Amazon Linux 2
// (https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-deprecation-faqs.html).
const withoutAL2 = 33

// These are the keys of amiSelector that are not tags.
const (
	keyName   = "aws::name"
	keyOwners = "aws::owners"
)

// readImages reads amiFamily and amiSelector.
func (c *cloudPart) readImages() {
	family := c.text("amiFamily")
	if family == "" {
		family = string(awsv1.FamilyAL2)
		c.notes.add(Defaulted, c.at("amiFamily"), "EC2NodeClass spec.amiSelectorTerms", "is not set; set to AL2, the former default")
	}
	for _, known := range append(awsv1.Families(), familyUbuntu) {
		if strings.EqualFold(family, string(known)) && family != string(known) {
			c.notes.add(Repaired, c.at("amiFamily"), "", "is %q, want %s", family, known)
			family = string(known)
		}
	}
	chosen := c.readImageSelector()
	switch {
	case family == familyUbuntu:
		c.ubuntu(chosen)
	case !slices.Contains(awsv1.Families(), awsv1.Family(family)):
		c.impossible(c.at("amiFamily"), "is %q, want AL2, Bottlerocket, Ubuntu, Windows2019, Windows2022 or Custom", family)
	case len(chosen) > 0:
		c.spec.AMISelectorTerms, c.spec.AMIFamily = chosen, new(awsv1.Family(family))
	case family == string(awsv1.FamilyCustom):
		c.impossible(c.at("amiSelector"), "is required for amiFamily Custom")
	default:
		c.alias(awsv1.Family(family))
	}
}

// alias selects the images that AWS recommends.
func (c *cloudPart) alias(family awsv1.Family) {
	if family == awsv1.FamilyAL2 && c.settings.KubernetesMinor >= withoutAL2 {
		family = awsv1.FamilyAL2023
		c.notes.add(Changed, c.at("amiFamily"), "EC2NodeClass spec.amiSelectorTerms", "no images of AL2 exist for Kubernetes 1.%d; set to AL2023", c.settings.KubernetesMinor)
		c.tellUserData()
	}
	c.spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: strings.ToLower(string(family)) + "@latest"}}
}

// bootstrapOfAL2 is the script with which user data made nodes of AL2 join. AL2023 does not have it
// (https://docs.aws.amazon.com/eks/latest/userguide/al2023.html).
const bootstrapOfAL2 = "/etc/eks/bootstrap.sh"

// tellUserData adds a note about the effect on AL2023 of user data that were written for AL2.
func (c *cloudPart) tellUserData() {
	text, ok := c.values["userData"].(string)
	const to = "EC2NodeClass spec.userData"
	switch {
	case !ok || strings.TrimSpace(text) == "":
	case strings.Contains(text, bootstrapOfAL2):
		c.notes.add(Impossible, c.at("userData"), to,
			"is for AL2 and uses %s, which AL2023 does not have; write an equivalent NodeConfig (apiVersion node.eks.aws/v1alpha1) in your own EC2NodeClass", bootstrapOfAL2)
	default:
		c.notes.add(Changed, c.at("userData"), to,
			"is written for AL2 and passed unchanged to AL2023; scripts run, but kubelet settings belong in a NodeConfig (apiVersion node.eks.aws/v1alpha1)")
	}
}

// These are the names of parameters that Canonical publishes for Ubuntu's images
// (https://cloud-images.ubuntu.com/docs/aws/eks/). 20.04 was built up to Kubernetes 1.29.
const (
	ubuntuParameter = "/aws/service/canonical/ubuntu/eks/%s/1.%d/stable/current/%s/hvm/ebs-gp2/ami-id"
	lastOfFocal     = 29
)

// ubuntu configures Ubuntu's images to boot like AL2, with the disk that they had.
func (c *cloudPart) ubuntu(chosen []awsv1.AMISelectorTerm) {
	c.notes.add(Changed, c.at("amiFamily"), "EC2NodeClass spec.amiFamily",
		"is Ubuntu; set to AL2, with which instances with Ubuntu images join the cluster")
	c.spec.AMIFamily = new(awsv1.FamilyAL2)
	if !c.has("blockDeviceMappings") {
		size := resource.MustParse("20Gi")
		c.spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{
			DeviceName: new("/dev/sda1"), RootVolume: true,
			EBS: &awsv1.BlockDevice{Encrypted: new(true), VolumeType: new("gp3"), VolumeSize: &size},
		}}
		c.notes.add(Defaulted, c.at("blockDeviceMappings"), "EC2NodeClass spec.blockDeviceMappings", "is not set; set to /dev/sda1 with 20Gi, encrypted, the former default for Ubuntu")
	}
	if len(chosen) > 0 {
		c.spec.AMISelectorTerms = chosen
		return
	}
	minor, release := c.settings.KubernetesMinor, "20.04"
	if minor == 0 {
		c.impossible(c.at("amiSelector"), "is required, because the Kubernetes version, which selects the Ubuntu images, is unknown")
		return
	}
	if minor > lastOfFocal {
		release = "22.04"
		c.notes.add(Changed, c.at("amiFamily"), "EC2NodeClass spec.amiSelectorTerms", "no images of Ubuntu 20.04 exist for Kubernetes 1.%d; set to %s", minor, release)
	}
	for _, arch := range karpv1.WellKnownArchitectures() {
		c.spec.AMISelectorTerms = append(c.spec.AMISelectorTerms, awsv1.AMISelectorTerm{SSMParameter: fmt.Sprintf(ubuntuParameter, release, minor, arch)})
	}
}

// readImageSelector parses amiSelector: IDs alone, or owners x names with the tags in each.
func (c *cloudPart) readImageSelector() []awsv1.AMISelectorTerm {
	const name = "amiSelector"
	written := c.pairs(name)
	if len(written) == 0 {
		return nil
	}
	rest := map[string]any{}
	for key, value := range written {
		if key != keyName && key != keyOwners {
			rest[key] = value
		}
	}
	part := &cloudPart{section: newSection(c.path, map[string]any{name: rest}, c.notes), origin: c.origin}
	s := part.readSelector(name)
	if s == nil {
		s = &selector{}
	}
	names, owners := split(written[keyName]), split(written[keyOwners])
	if len(s.ids) > 0 {
		return c.imagesByID(s.ids, len(names)+len(owners) > 0)
	}
	if len(owners) == 0 && len(names) == 0 { // names imply these owners
		owners = []string{"self", "amazon"}
		c.notes.add(Defaulted, c.at(name), "EC2NodeClass spec.amiSelectorTerms", "%s is not set; set to self and amazon, the former default", keyOwners)
	}
	if !c.fits(name, times(times(max(1, len(owners)), max(1, len(names))), max(1, s.combinations))) {
		return nil
	}
	c.restrictByTags(s.tags)
	var terms []awsv1.AMISelectorTerm
	for _, owner := range orNone(owners) {
		for _, image := range orNone(names) {
			for _, tags := range orNoTags(s.tags) {
				terms = append(terms, awsv1.AMISelectorTerm{Owner: owner, Name: image, Tags: tags})
			}
		}
	}
	return terms
}

func (c *cloudPart) imagesByID(ids []string, more bool) []awsv1.AMISelectorTerm {
	if more {
		c.notes.add(Changed, c.at("amiSelector"), "", "contains IDs, and owners or names; only the IDs are used")
	}
	var terms []awsv1.AMISelectorTerm
	for _, id := range ids {
		terms = append(terms, awsv1.AMISelectorTerm{ID: id})
	}
	if !c.fits("amiSelector", len(terms)) {
		return nil
	}
	return terms
}

func orNone(values []string) []string {
	if len(values) == 0 {
		return []string{""}
	}
	return values
}

func orNoTags(tags []map[string]string) []map[string]string {
	if len(tags) == 0 {
		return []map[string]string{nil}
	}
	return tags
}

// restrictByTags keeps the requirements on nodes that followed from tags of images, as far as the selector contains
// them: a tag that is a well-known label was a requirement of its image.
func (c *cloudPart) restrictByTags(combinations []map[string]string) {
	if len(combinations) == 0 {
		return
	}
	const field, to = "amiSelector", "spec.template.spec.requirements"
	c.notes.add(Changed, c.at(field), "", "tags of images that are well-known labels no longer restrict nodes; if images have such tags that are not in the selector, create a node class for these images, and a NodePool with these requirements")
	for _, key := range slices.Sorted(maps.Keys(combinations[0])) {
		if !slices.Contains(karpv1.CoreRules().WellKnown, key) && !slices.Contains(awsv1.WellKnownLabels(), key) || forbidden(key) != "" {
			continue
		}
		var values []string
		for _, tags := range combinations {
			if !slices.Contains(values, tags[key]) {
				values = append(values, tags[key])
			}
		}
		switch {
		case slices.Contains(values, anyValue):
		case len(values) == 1 || key == corev1.LabelArchStable: // an image has its architecture without a tag
			c.restrictions = append(c.restrictions, karpv1.Requirement{Key: key, Operator: karpv1.OperatorIn, Values: values})
		default:
			c.restrictions = append(c.restrictions, karpv1.Requirement{Key: key, Operator: karpv1.OperatorIn, Values: values})
			c.notes.add(Impossible, c.at(field), to, "one node class selects images for %s %s, and cannot distinguish them; create a node class and a NodePool for each", key, words(values))
		}
	}
}
