package names

import (
	"maps"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are keys of labels and taints in manifests from before v1.
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

// labels contains those of nodes. The value of the old one always equals that of the current one.
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

// podAnnotations and nodeAnnotations contain those that users write. The value "true" has the same meaning under both
// names. On the other kind of object an old name had no meaning.
var (
	podAnnotations  = map[string]string{karpv1.AnnotationDoNotEvict: karpv1.AnnotationDoNotDisrupt}
	nodeAnnotations = map[string]string{karpv1.AnnotationDoNotConsolidate: karpv1.AnnotationDoNotDisrupt}
)

// taints contains those of nodes that are being disrupted, which DaemonSets and agents tolerate.
var taints = map[string]string{TaintKeyDisruption: karpv1.TaintKeyDisrupted}

// policies contains values of spec.disruption.consolidationPolicy.
var policies = map[string]string{"WhenUnderutilized": string(karpv1.ConsolidateWhenEmptyOrUnderutilized)}

// gone contains labels without a successor, and the required changes to manifests that use them.
var gone = map[string]string{
	awsv1.Group + "/instance-pods": "no label contains the maximum number of pods of a node; remove it, because the requests of pods determine the node",
	awsv1.Group + "/instance-ami-id": "no node is launched for an image, although nodes have the label; use a NodePool " +
		"whose EC2NodeClass selects it",
	"node.k8s.aws/launch-template-name":   "custom launch templates are not supported; use an EC2NodeClass (amiSelectorTerms, userData, securityGroupSelectorTerms, instanceProfile)",
	"node.k8s.aws/subnet-name":            "use spec.subnetSelectorTerms of an EC2NodeClass",
	"node.k8s.aws/subnet-tag-key":         "use spec.subnetSelectorTerms of an EC2NodeClass",
	"node.k8s.aws/security-group-name":    "use spec.securityGroupSelectorTerms of an EC2NodeClass",
	"node.k8s.aws/security-group-tag-key": "use spec.securityGroupSelectorTerms of an EC2NodeClass",
}

// Aliases returns the labels by their old names, for karpv1.LabelRules. The caller owns the map.
func Aliases() map[string]string { return maps.Clone(labels) }

// Label returns the current name of a label of nodes. renamed is false if old is not an old name.
func Label(old string) (today string, renamed bool) { return of(labels, old) }

// PodAnnotation returns the current name of an annotation of pods. renamed is false if old is not an old name there.
func PodAnnotation(old string) (today string, renamed bool) { return of(podAnnotations, old) }

// NodeAnnotation returns the current name of an annotation of nodes. renamed is false if old is not an old name
// there.
func NodeAnnotation(old string) (today string, renamed bool) { return of(nodeAnnotations, old) }

// Taint returns the current key of a taint. renamed is false if old is not an old name.
func Taint(old string) (today string, renamed bool) { return of(taints, old) }

// ConsolidationPolicy returns the current value of spec.disruption.consolidationPolicy. renamed is false if old is
// not an old value.
func ConsolidationPolicy(old string) (today string, renamed bool) { return of(policies, old) }

func of(table map[string]string, old string) (string, bool) {
	if today, renamed := table[old]; renamed {
		return today, true
	}
	return old, false
}

// Gone returns the required change for a label without a successor, and an empty string for any other label.
func Gone(label string) string { return gone[label] }
