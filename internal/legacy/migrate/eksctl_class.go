package migrate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// eksctlClass creates the class of a group. The subnets and security groups are those that eksctl creates for the
// cluster, or those in the ClusterConfig.
func (e *eksctlGroup) eksctlClass() {
	e.class = mapping()
	cluster := text(at(e.root, "metadata", "name"))
	e.identity(cluster)
	family := e.image()
	e.subnets(cluster)
	e.securityGroups(cluster)
	e.disks(family)
	e.metadataOptions()
	if e.isTrue("enableDetailedMonitoring") {
		set(e.class, truth(true), "detailedMonitoring")
	}
	e.tags()
	e.kubeletSettings()
}

func truth(value bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(value)}
}

// identity sets the group's role or instance profile.
func (e *eksctlGroup) identity(cluster string) {
	name := func(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
	role, profile := text(e.field("iam", "instanceRoleName")), text(e.field("iam", "instanceProfileARN"))
	if arn := text(e.field("iam", "instanceRoleARN")); role == "" && arn != "" {
		role = name(arn)
	}
	var policies []string
	for _, field := range []string{"attachPolicy", "attachPolicyARNs", "withAddonPolicies", "instanceRolePermissionsBoundary"} {
		if !empty(e.field("iam", field)) {
			policies = append(policies, "iam."+field)
		}
	}
	switch {
	case role != "":
		set(e.class, scalar(role), "role")
	case profile != "":
		set(e.class, scalar(name(profile)), "instanceProfile")
	default:
		role = "KarpenterNodeRole-" + cluster
		set(e.class, scalar(role), "role")
		e.remark(Advice, "iam", "contains no role, because eksctl creates the role; spec.role of the EC2NodeClass is set to %s; "+
			"create this role, or set the name of the existing role", role)
		if len(policies) > 0 {
			e.remark(Advice, "iam", "%s defines permissions of the role of the group; grant them to the role %s, too", strings.Join(policies, ", "), role)
		}
	}
}

// family describes a family of images.
type family struct {
	name   awsv1.Family
	alias  string // empty: there is none
	device string // contains the data of pods
}

var families = map[string]family{
	"AmazonLinux2023": {awsv1.FamilyAL2023, "al2023", "/dev/xvda"}, "AmazonLinux2": {awsv1.FamilyAL2, "al2", "/dev/xvda"},
	"Bottlerocket":                   {awsv1.FamilyBottlerocket, "bottlerocket", "/dev/xvdb"},
	"BottlerocketFips":               {awsv1.FamilyBottlerocket, "bottlerocket", "/dev/xvdb"},
	"WindowsServer2019CoreContainer": {awsv1.FamilyWindows2019, "windows2019", "/dev/sda1"},
	"WindowsServer2019FullContainer": {awsv1.FamilyWindows2019, "windows2019", "/dev/sda1"},
	"WindowsServer2022CoreContainer": {awsv1.FamilyWindows2022, "windows2022", "/dev/sda1"},
	"WindowsServer2022FullContainer": {awsv1.FamilyWindows2022, "windows2022", "/dev/sda1"},
	"WindowsServer2025CoreContainer": {awsv1.FamilyWindows2025, "windows2025", "/dev/sda1"},
	"WindowsServer2025FullContainer": {awsv1.FamilyWindows2025, "windows2025", "/dev/sda1"},
}

// image sets the group's images, and returns the family that determines how instances join the cluster.
func (e *eksctlGroup) image() family {
	written, id := text(e.field("amiFamily")), text(e.field("ami"))
	if written == "" {
		written = "AmazonLinux2023"
		if e.field("launchTemplate") == nil {
			e.remark(Defaulted, "amiFamily", "is not set; set to AmazonLinux2023, the current default of eksctl; the default of older versions was AmazonLinux2")
		}
	}
	if id != "" && !strings.HasPrefix(id, "ami-") {
		if !slices.Contains([]string{"auto", "auto-ssm", "static", "ssm"}, id) {
			e.remark(Impossible, "ami", "is %s, want the ID of an image; the newest image of the family is used", id)
		}
		id = ""
	}
	if release, ubuntu := ubuntuRelease(written); ubuntu {
		e.ubuntu(written, release, id)
		return family{name: awsv1.FamilyAL2, device: "/dev/sda1"}
	}
	f, known := families[written]
	if f.name.Windows() {
		e.os = "windows"
	}
	term := mapping()
	if id != "" {
		f = e.oneImage(f, written, id)
		set(e.class, scalar(string(f.name)), "amiFamily")
		set(term, scalar(id), "id")
	} else {
		if !known {
			f = families["AmazonLinux2023"]
			e.remark(Impossible, "amiFamily", "is %s, an unknown family; set to al2023@latest; "+
				"for other images, set spec.amiSelectorTerms, amiFamily and userData", written)
		}
		f = e.newest(f, written)
		set(term, scalar(f.alias+"@"+e.release(f, f == families[written])), "alias")
	}
	set(e.class, sequence(term), "amiSelectorTerms")
	return f
}

// otherwise describes the settings of images that are not derived from those of their family.
const otherwise = "otherwise, set amiFamily: Custom, and set spec.userData so that instances join the cluster"

// oneImage returns the family that determines how instances with a custom image join the cluster: the one in the
// group, or Custom if it is unknown.
func (e *eksctlGroup) oneImage(f family, written, id string) family {
	if f.name == "" {
		f = family{name: awsv1.FamilyCustom, device: "/dev/xvda"}
		e.remark(Impossible, "amiFamily", "is %s, an unknown family; set to Custom, whose instances get spec.userData and nothing else; "+
			"set spec.userData so that instances join the cluster, and verify that the root disk is %s", written, f.device)
		e.special = true
	} else if e.field("overrideBootstrapCommand") == nil {
		e.remark(Advice, "ami", "is %s, which gets the user data of the family %s and must be derived from an image of this family; "+
			otherwise, id, f.name)
	}
	return f
}

// newest returns the newest family with images for the cluster's version.
func (e *eksctlGroup) newest(f family, written string) family {
	if written == "BottlerocketFips" {
		e.remark(Impossible, "amiFamily", "is %s, and no alias selects FIPS images; set to bottlerocket@latest; "+
			"for FIPS images, set ssmParameter in spec.amiSelectorTerms, and amiFamily: Bottlerocket", written)
		e.special = true
	}
	if f.name == awsv1.FamilyAL2 && e.minor() >= v1alpha5.FirstWithoutAL2 {
		e.remark(Changed, "amiFamily", "no images of Amazon Linux 2 exist for Kubernetes 1.%d; set to al2023@latest", e.minor())
		return families["AmazonLinux2023"]
	}
	return f
}

// minor returns the minor version of the cluster, or 0 if it is unknown.
func (e *eksctlGroup) minor() int {
	if e.options.KubernetesMinor > 0 {
		return e.options.KubernetesMinor
	}
	_, minor, _ := strings.Cut(text(at(e.root, "metadata", "version")), ".")
	return number(minor)
}

var dayOfRelease = regexp.MustCompile(`-v?([0-9]{8})$`)

// release returns the version of an alias for releaseVersion, such as 1.30.4-20240917, if it belongs to the family
// that is written.
func (e *eksctlGroup) release(f family, asWritten bool) string {
	written := text(e.field("releaseVersion"))
	if written == "" {
		return "latest"
	}
	if !asWritten {
		e.remark(Impossible, "releaseVersion", "is %s, which is not a release of %s; set to latest", written, f.alias)
		return "latest"
	}
	if found := dayOfRelease.FindStringSubmatch(written); found != nil && (f.name == awsv1.FamilyAL2 || f.name == awsv1.FamilyAL2023) {
		return "v" + found[1]
	}
	version, _, _ := strings.Cut(written, "-")
	if f.name == awsv1.FamilyBottlerocket && regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(version) {
		return "v" + strings.TrimPrefix(version, "v")
	}
	e.remark(Impossible, "releaseVersion", "is %s, for which an alias has no version; set to latest", written)
	return "latest"
}

// ubuntuRelease returns 22.04 for Ubuntu2204 and UbuntuPro2204.
func ubuntuRelease(family string) (release string, ubuntu bool) {
	digits, found := strings.CutPrefix(strings.TrimPrefix(strings.Replace(family, "UbuntuPro", "Ubuntu", 1), "-"), "Ubuntu")
	if !found || len(digits) != 4 {
		return "", false
	}
	return digits[:2] + "." + digits[2:], true
}

// ubuntu selects Ubuntu's images, which join like those of AL2 (https://karpenter.sh/docs/upgrading/v1-migration).
func (e *eksctlGroup) ubuntu(written, release, id string) {
	set(e.class, scalar(string(awsv1.FamilyAL2)), "amiFamily")
	term := mapping()
	set(e.class, sequence(term), "amiSelectorTerms")
	const join = "set to AL2, with which instances join the cluster by /etc/eks/bootstrap.sh, a script in Canonical's images for EKS"
	if strings.HasPrefix(id, "ami-") {
		set(term, scalar(id), "id")
		e.remark(Advice, "amiFamily", "is %s; %s; the image %s must contain this script; "+otherwise, written, join, id)
		return
	}
	product, disk, arch := "eks", "ebs-gp2", "amd64"
	if strings.HasPrefix(written, "UbuntuPro") {
		product = "eks-pro"
	}
	if release >= "24.04" {
		disk = "ebs-gp3"
	}
	if slices.Contains(e.archs, "arm64") {
		arch = "arm64"
	}
	version := "VERSION"
	if minor := e.minor(); minor > 0 {
		version = "1." + itoa(minor)
	}
	parameter := "/aws/service/canonical/ubuntu/" + product + "/" + release + "/" + version + "/stable/current/" + arch + "/hvm/" + disk + "/ami-id"
	set(term, scalar(parameter), "ssmParameter")
	if version == "VERSION" {
		e.remark(Impossible, "amiFamily", "is %s; %s; the Kubernetes version of the cluster, which selects the image, is unknown; "+
			"replace VERSION in spec.amiSelectorTerms, or set --kubernetes-version", written, join)
		return
	}
	e.remark(Advice, "amiFamily", "is %s; %s; verify that the image exists: aws ssm get-parameter --name %s", written, join, parameter)
}

// subnets sets those of the group, or of the ClusterConfig, or those that eksctl creates and tags.
func (e *eksctlGroup) subnets(cluster string) {
	terms := sequence()
	add := func(value string, path ...string) {
		term := mapping()
		set(term, scalar(value), path...)
		terms.Content = append(terms.Content, term)
	}
	kind, role := "public", "kubernetes.io/role/elb"
	if e.isTrue("privateNetworking") {
		kind, role = "private", "kubernetes.io/role/internal-elb"
	}
	for _, name := range texts(e.field("subnets")) {
		known := text(at(e.root, "vpc", "subnets", "private", name, "id"))
		if known == "" {
			known = text(at(e.root, "vpc", "subnets", "public", name, "id"))
		}
		switch {
		case strings.HasPrefix(name, "subnet-"):
			add(name, "id")
		case known != "":
			add(known, "id")
		default:
			add(name, "tags", "Name")
		}
	}
	if len(terms.Content) == 0 { // a VPC that existed before has no tags of eksctl
		all := at(e.root, "vpc", "subnets", kind)
		for _, name := range fields(all) {
			zone := text(at(all, name, "az"))
			if zone == "" {
				zone = name
			}
			if id := text(at(all, name, "id")); id != "" && (len(e.zones) == 0 || slices.Contains(e.zones, zone)) {
				add(id, "id")
			}
		}
	}
	if len(terms.Content) == 0 {
		add(cluster, "tags", "alpha.eksctl.io/cluster-name")
		set(terms.Content[0], scalar("1"), "tags", role)
	}
	set(e.class, terms, "subnetSelectorTerms")
}

// securityGroups sets those with the cluster's tag, of which EKS creates one and eksctl one per group, and those with
// IDs in the file. A group with withLocal: false gets only the latter, if those are all of its security groups.
func (e *eksctlGroup) securityGroups(cluster string) {
	off := func(field string) bool { return text(e.field("securityGroups", field)) == "false" }
	shared, ids := texts(at(e.root, "vpc", "sharedNodeSecurityGroup")), texts(e.field("securityGroups", "attachIDs"))
	known := off("withLocal") && (off("withShared") || len(shared) > 0)
	if !off("withShared") {
		ids = append(shared, ids...)
	}
	terms := sequence()
	if !known || len(ids) == 0 {
		owned := mapping()
		set(owned, scalar("owned"), "tags", awsv1.TagClusterPrefix+cluster)
		terms.Content = append(terms.Content, owned)
		for _, field := range []string{"withShared", "withLocal"} {
			if off(field) {
				e.remark(Impossible, "securityGroups."+field,
					"is false, and the ClusterConfig does not contain the IDs of all security groups of the group; "+
						"the EC2NodeClass selects those with the tag %s%s: owned, which may allow more traffic; "+
						"set the required IDs in spec.securityGroupSelectorTerms", awsv1.TagClusterPrefix, cluster)
				e.special = true
			}
		}
	}
	for _, id := range ids {
		term := mapping()
		set(term, scalar(id), "id")
		terms.Content = append(terms.Content, term)
	}
	set(e.class, terms, "securityGroupSelectorTerms")
}

// metadataOptions sets eksctl's defaults: pods can get tokens unless that is disabled.
func (e *eksctlGroup) metadataOptions() {
	hops, tokens := int64(2), "required"
	if e.isTrue("disablePodIMDS") {
		hops = 1
	} else if text(e.field("disableIMDSv1")) == "false" {
		tokens = "optional"
	}
	set(e.class, integer(hops), "metadataOptions", "httpPutResponseHopLimit")
	set(e.class, scalar(tokens), "metadataOptions", "httpTokens")
}

// tagOfTemplate is the prefix of tags of Auto Scaling groups from which the Cluster Autoscaler derives the nodes of
// an empty group.
const tagOfTemplate = "k8s.io/cluster-autoscaler/node-template/"

// ofTypes lists resources that are known for every type, and from the class's disks.
var ofTypes = []string{"cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu", "amd.com/gpu",
	"aws.amazon.com/neuron", "vpc.amazonaws.com/pod-eni", "vpc.amazonaws.com/efa"}

func (e *eksctlGroup) tags() {
	for _, tag := range fields(e.field("tags")) {
		if e.field("tags", tag).Kind != yaml.ScalarNode {
			continue // wrongFields reports it
		}
		value := text(e.field("tags", tag))
		name, ofTemplate := strings.CutPrefix(tag, tagOfTemplate)
		kind, name, _ := strings.Cut(name, "/")
		switch {
		case ofTemplate && kind == "label" && e.hasLabel(name, value):
		case ofTemplate && kind == "taint" && slices.ContainsFunc(e.taints, func(t *yaml.Node) bool { return text(at(t, "key")) == name }):
		case ofTemplate && kind == "resources" && slices.Contains(ofTypes, name):
		case ofTemplate && kind == "resources":
			e.remark(Impossible, "tags", "contains %s: %s; a NodePool cannot declare the resource %s, so no node is launched for pods that request it",
				tag, value, name)
		case ofTemplate:
			e.remark(Advice, "tags", "contains %s: %s, a %s of the nodes that is not a field of the group; "+
				"if another component sets it, add it to spec.template of the NodePool", tag, value, kind)
		case strings.HasPrefix(tag, "k8s.io/cluster-autoscaler/"):
		case v1alpha5.ReservedTag(tag):
			e.remark(Advice, "tags", "contains %s, a tag that only the controller sets; omitted", tag)
		default:
			set(e.class, scalar(value), "tags", tag)
		}
	}
	for _, field := range []string{"instanceName", "instancePrefix"} {
		if name := text(e.field(field)); name != "" && at(e.class, "tags", "Name") == nil {
			e.remark(Advice, field, "is not migrated; to name the instances, set the tag Name in spec.tags of the EC2NodeClass")
		}
	}
}

func (e *eksctlGroup) hasLabel(name, value string) bool {
	return e.labels[name] == value || e.made[name] == value || e.refused[name] == value || labelKindOf(name) == nodeLabel
}
