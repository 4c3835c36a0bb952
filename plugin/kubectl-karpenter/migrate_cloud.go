package main

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// The objects of a cluster show which cloud it has. Some of them have precedence over others: objects of a rank are
// used only if no object of a lower rank identifies a cloud.
const (
	byTranslation = iota // what Provisioners were converted to in the cluster
	byReference          // classes that pools and claims reference
	byClass              // existing classes
	byMachine            // the machines of nodes
	ranks
)

// witnesses are the first objects that identify a cloud: of each rank for aws, and for kwok.
type witnesses [ranks]struct{ aws, kwok string }

// add records which cloud an object identifies, if any.
func (w *witnesses) add(object *unstructured.Unstructured) {
	switch object.GetKind() {
	case "Provisioner":
		if kind, _, found := strings.Cut(textAt(object, "status", "nodeClass"), "/"); found {
			w.speak(byTranslation, object, kind)
		}
	case "AWSNodeTemplate":
		w.speak(byReference, object, awsv1.Kind)
	case "NodePool":
		rank := byReference
		if object.GetAnnotations()[karpv1.AnnotationMadeFrom] != "" {
			rank = byTranslation
		}
		w.speak(rank, object, textAt(object, "spec", "template", "spec", "nodeClassRef", "kind"))
	case "NodeClaim":
		w.speak(byReference, object, textAt(object, "spec", "nodeClassRef", "kind"))
	case awsv1.Kind, kwokv1alpha1.Kind:
		w.speak(byClass, object, object.GetKind())
	case "Node":
		cloud, _, _ := strings.Cut(textAt(object, "spec", "providerID"), "://")
		w.speak(byMachine, object, map[string]string{"aws": awsv1.Kind, "kwok": kwokv1alpha1.Kind}[cloud])
	}
}

// speak records the object as evidence for the cloud with this kind of classes.
func (w *witnesses) speak(rank int, object *unstructured.Unstructured, class string) {
	who := object.GetKind() + " " + object.GetName()
	switch class {
	case awsv1.Kind:
		w[rank].aws = cmp.Or(w[rank].aws, who)
	case kwokv1alpha1.Kind:
		w[rank].kwok = cmp.Or(w[rank].kwok, who)
	}
}

// kwok reports whether machines are simulated, and the evidence. The evidence is empty if there is none, or if the
// result is the expected one.
func (w *witnesses) kwok() (kwok bool, because string) {
	for _, rank := range w {
		switch {
		case rank.kwok != "" && rank.aws != "":
			return false, fmt.Sprintf("the cluster has two clouds, kwok (%s) and aws (%s); Provisioners are converted for aws; "+
				"--cloud-provider changes that", rank.kwok, rank.aws)
		case rank.kwok != "":
			return true, fmt.Sprintf("the nodes of the cluster are simulated (%s); Provisioners are converted for kwok; --cloud-provider changes that", rank.kwok)
		case rank.aws != "":
			return false, ""
		}
	}
	return false, ""
}

// textAt returns a string field of an object, empty if it does not exist.
func textAt(object *unstructured.Unstructured, path ...string) string {
	value, _, err := unstructured.NestedString(object.Object, path...)
	if err != nil {
		return "" // the field has another type, and is ignored
	}
	return value
}
