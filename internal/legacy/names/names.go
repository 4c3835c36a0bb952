package names

import (
	"maps"
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Keys of labels and taints that manifests of before v1 have.
const (
	LabelProvisioner   = karpv1.Group + "/provisioner-name"
	LabelCapacityType  = "node.k8s.aws/capacity-type"
	LabelFamily        = awsv1.Group + "/instance.family"
	LabelSize          = awsv1.Group + "/instance.size"
	LabelCPU           = awsv1.Group + "/instance.cpu"
	LabelMemory        = awsv1.Group + "/instance.memory"
	LabelGPUName       = awsv1.Group + "/instance.gpu.name"
	LabelGPUMaker      = awsv1.Group + "/instance.gpu.manufacturer"
	LabelGPUCount      = awsv1.Group + "/instance.gpu.count"
	LabelGPUMemory     = awsv1.Group + "/instance.gpu.memory"
	TaintKeyDisruption = karpv1.Group + "/disruption"
)

// labels are those of nodes: the value of the old one is always that of today's.
var labels = map[string]string{
	LabelProvisioner:  karpv1.LabelNodePool,
	LabelCapacityType: karpv1.LabelCapacityType,
	LabelFamily:       awsv1.LabelInstanceFamily,
	LabelSize:         awsv1.LabelInstanceSize,
	LabelCPU:          awsv1.LabelInstanceCPU,
	LabelMemory:       awsv1.LabelInstanceMemory,
	LabelGPUName:      awsv1.LabelInstanceGPUName,
	LabelGPUMaker:     awsv1.LabelInstanceGPUManufacturer,
	LabelGPUCount:     awsv1.LabelInstanceGPUCount,
	LabelGPUMemory:    awsv1.LabelInstanceGPUMemory,
}

// podAnnotations and nodeAnnotations are those that people write; the value "true" means the same under both names. On the
// other kind of object an old name never meant anything.
var (
	podAnnotations  = map[string]string{karpv1.AnnotationDoNotEvict: karpv1.AnnotationDoNotDisrupt}
	nodeAnnotations = map[string]string{karpv1.AnnotationDoNotConsolidate: karpv1.AnnotationDoNotDisrupt}
)

// taints are those of nodes that are being disrupted, which DaemonSets and agents tolerate.
var taints = map[string]string{TaintKeyDisruption: karpv1.TaintKeyDisrupted}

// policies are values of spec.disruption.consolidationPolicy.
var policies = map[string]string{"WhenUnderutilized": string(karpv1.ConsolidateWhenEmptyOrUnderutilized)}

// gone are labels without a successor, and what to do about a manifest that has one.
var gone = map[string]string{
	awsv1.Group + "/instance-pods":        "no label says how many pods a node takes; leave it out, what pods request decides",
	awsv1.Group + "/instance-ami-id":      "no label names the image; use a NodePool whose EC2NodeClass selects it",
	"node.k8s.aws/launch-template-name":   "launch templates of your own are not used; say it in an EC2NodeClass (amiSelectorTerms, userData, securityGroupSelectorTerms, instanceProfile)",
	"node.k8s.aws/subnet-name":            "subnets are selected by spec.subnetSelectorTerms of an EC2NodeClass",
	"node.k8s.aws/subnet-tag-key":         "subnets are selected by spec.subnetSelectorTerms of an EC2NodeClass",
	"node.k8s.aws/security-group-name":    "security groups are selected by spec.securityGroupSelectorTerms of an EC2NodeClass",
	"node.k8s.aws/security-group-tag-key": "security groups are selected by spec.securityGroupSelectorTerms of an EC2NodeClass",
}

// Renamed is a name of before, and today's.
type Renamed struct{ Old, New string }

// Labels are all labels of nodes that have another name today, sorted by the old one.
func Labels() []Renamed { return sorted(labels) }

// Taints are all keys of taints that have another name today, sorted by the old one.
func Taints() []Renamed { return sorted(taints) }

func sorted(of map[string]string) []Renamed {
	list := make([]Renamed, 0, len(of))
	for _, old := range slices.Sorted(maps.Keys(of)) {
		list = append(list, Renamed{Old: old, New: of[old]})
	}
	return list
}

// Aliases are the labels by their old names, for karpv1.LabelRules. The map is the caller's.
func Aliases() map[string]string { return maps.Clone(labels) }

// Label is today's name of a label of nodes; renamed is false for one that is not an old name.
func Label(old string) (today string, renamed bool) { return of(labels, old) }

// PodAnnotation is today's name of an annotation of pods; renamed is false for one that is not an old name there.
func PodAnnotation(old string) (today string, renamed bool) { return of(podAnnotations, old) }

// NodeAnnotation is today's name of an annotation of nodes; renamed is false for one that is not an old name there.
func NodeAnnotation(old string) (today string, renamed bool) { return of(nodeAnnotations, old) }

// Taint is today's key of a taint; renamed is false for one that is not an old name.
func Taint(old string) (today string, renamed bool) { return of(taints, old) }

// ConsolidationPolicy is today's value of spec.disruption.consolidationPolicy; renamed is false for one that is not an old
// value.
func ConsolidationPolicy(old string) (today string, renamed bool) { return of(policies, old) }

func of(table map[string]string, old string) (string, bool) {
	if today, renamed := table[old]; renamed {
		return today, true
	}
	return old, false
}

// Gone says what to do about a label that has no successor; empty for any other.
func Gone(label string) string { return gone[label] }
