package offline

import (
	"fmt"
	"slices"
	"strings"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/plugin/podusage"
	"github.com/karpenter-go/karpenter/plugin/viewer"
)

// These are the kinds of node class, as a role names them.
const (
	awsClasses  = "ec2nodeclasses." + awsv1.Group
	kwokClasses = "kwoknodeclasses." + kwokv1alpha1.Group
)

// usageResource is the usage of pods, as a role names it.
var usageResource = podusage.Resource.GroupResource().String()

// effects are how an answer differs without a kind. A kind that is not listed here is required.
var effects = map[string]string{
	"daemonsets.apps":                             "DaemonSet pods that do not run yet use no capacity of new nodes",
	"persistentvolumeclaims":                      "pending pods with a PersistentVolumeClaim are ignored, and limits of attached volumes do not count",
	"persistentvolumes":                           "pending pods with a bound PersistentVolumeClaim are ignored",
	"storageclasses.storage.k8s.io":               "pending pods with an unbound PersistentVolumeClaim are ignored",
	"csinodes.storage.k8s.io":                     "nodes have no limit of attached volumes",
	"namespaces":                                  "namespaces have no labels that namespaceSelector could match",
	"poddisruptionbudgets.policy":                 "no PodDisruptionBudget keeps a node",
	"services":                                    "default topology spread does not follow Services",
	"replicationcontrollers":                      "default topology spread does not follow ReplicationControllers",
	"replicasets.apps":                            "default topology spread does not follow ReplicaSets; pods belong to the Deployment that the ReplicaSet's name indicates",
	"jobs.batch":                                  "pods belong to the CronJob that the Job's name indicates",
	"statefulsets.apps":                           "default topology spread does not follow StatefulSets",
	"limitranges":                                 "expected DaemonSet pods have no defaults of LimitRanges",
	"runtimeclasses.node.k8s.io":                  "expected DaemonSet pods have no overhead of RuntimeClasses",
	"priorityclasses.scheduling.k8s.io":           "pods of files have the priority 0",
	"nodeoverlays." + karpv1.Group:                "prices and resources of NodeOverlays do not count",
	"resourcequotas":                              "ResourceQuotas do not reduce the number of pods of CapacityBuffers",
	"capacitybuffers." + autoscalingv1beta1.Group: "no room of CapacityBuffers is planned, and none keeps a node",
	"capacityquotas." + autoscalingv1beta1.Group:  "CapacityQuotas limit nothing",
	awsClasses:                                    "what pools of the kind EC2NodeClass can launch is not known",
	usageResource:                                 "the usage of pods is not known",
	kwokClasses:                                   "what pools of the kind KWOKNodeClass can launch is not known",
}

// deny records a kind that the API server refused, and reports whether that was because of missing permissions.
func (o *remarks) deny(verb, resource string, err error) bool {
	user, denied := viewer.Denied(err)
	if !denied {
		return false
	}
	o.deniedUser = user
	if !o.lacks(resource) {
		o.denied = append(o.denied, capture.Denied{Resource: resource, Verb: verb, Effect: effects[resource]})
	}
	return true
}

// lacks reports whether the kind may not be read.
func (o *remarks) lacks(resource string) bool {
	return slices.ContainsFunc(o.denied, func(d capture.Denied) bool { return d.Resource == resource })
}

// required returns an error that names all kinds that may not be read, if the answer depends on one of them. A kind of
// optional is required too.
func (o *remarks) required(optional ...string) error {
	var without, further []string
	for _, d := range o.denied {
		if d.Effect == "" || slices.Contains(optional, d.Resource) {
			without = append(without, d.Resource)
		} else {
			further = append(further, d.Resource)
		}
	}
	if len(without) == 0 {
		return nil
	}
	also := ""
	if len(further) > 0 {
		also = "; nor may it list " + strings.Join(further, ", ")
	}
	return fmt.Errorf("%s may not list %s in the whole cluster, and there is no answer without them%s; %s",
		viewer.Subject(o.deniedUser), strings.Join(without, ", "), also, viewer.Grant(o.deniedUser))
}

// Denied returns a line that names all kinds that may not be read, "" if there are none.
func (o *remarks) Denied() string {
	if len(o.denied) == 0 {
		return ""
	}
	byVerb := map[string][]string{}
	var verbs []string
	for _, d := range o.denied {
		if byVerb[d.Verb] == nil {
			verbs = append(verbs, d.Verb)
		}
		byVerb[d.Verb] = append(byVerb[d.Verb], d.Resource)
	}
	for i, verb := range verbs {
		verbs[i] = verb + " " + strings.Join(byVerb[verb], ", ")
	}
	return fmt.Sprintf("the answer is incomplete: %s may not %s in the whole cluster; %s", viewer.Subject(o.deniedUser), strings.Join(verbs, ", nor "), viewer.Grant(o.deniedUser))
}

// incomplete returns the lines about what an answer lacks.
func incomplete(denied []capture.Denied) string {
	var b strings.Builder
	for _, d := range denied {
		fmt.Fprintf(&b, "incomplete without %s: %s\n", d.Resource, d.Effect)
	}
	return b.String()
}
