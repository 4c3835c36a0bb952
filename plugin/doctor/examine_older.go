package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/cloud"
)

// older returns findings about Provisioners and AWSNodeTemplates that were deleted, and that no controller releases.
func older(f *Facts, o Options) []cloud.Finding {
	var list []cloud.Finding
	add := func(kind, class string, object *metav1.ObjectMeta) {
		at := slices.Index(object.Finalizers, karpv1.FinalizerMadeFrom)
		if at < 0 || object.DeletionTimestamp == nil {
			return
		}
		late := f.at().Sub(object.DeletionTimestamp.Time)
		if late <= o.Patience {
			return
		}
		kind = strings.ToLower(kind)
		whose := "the controller that manages it"
		if class != "" {
			whose = "the controller of the provider of " + class
		}
		list = append(list, found(OlderNotReleased, kind+"/"+object.Name,
			fmt.Sprintf("the object was deleted %s ago, and the finalizer %s remains until %s has released the objects created from it", round(late), karpv1.FinalizerMadeFrom, whose),
			"run this controller (--cloud-provider), and see its log; if it must not run again, remove the owner references from the NodePools and "+
				"node classes to keep, because all others are then deleted, and run kubectl patch "+
				kind+" "+object.Name+" --type=json -p '"+withoutFinalizer(at, karpv1.FinalizerMadeFrom)+"'"))
	}
	for i := range f.Provisioners {
		p := &f.Provisioners[i]
		class, _, _ := strings.Cut(p.Status.NodeClass, "/")
		add(karpv1alpha5.Kind, class, &p.ObjectMeta)
	}
	for i := range f.Templates {
		add(awsv1alpha1.Kind, awsv1.Kind, &f.Templates[i].ObjectMeta)
	}
	return list
}

// unconverted returns findings about Provisioners and AWSNodeTemplates that were not converted. A result that is not ready
// is a finding of the pool or the class.
func unconverted(f *Facts, o Options) []cloud.Finding {
	var list []cloud.Finding
	add := func(kind string, object *metav1.ObjectMeta, why *Condition) {
		if why == nil || why.Status != string(metav1.ConditionFalse) || object.DeletionTimestamp != nil {
			return
		}
		if why.Reason == karpv1alpha5.ReasonNotObserved && f.at().Sub(why.Since) <= o.Patience {
			return // another problem has to be solved first
		}
		kind = strings.ToLower(kind)
		fix := fmt.Sprintf("fix the problem in the message: kubectl edit %s %s; the objects created from it are then updated", kind, object.Name)
		if why.Reason == karpv1alpha5.ReasonNameTaken {
			fix = fmt.Sprintf("follow the message; or, to keep the existing object, run kubectl delete %s %s", kind, object.Name)
		}
		list = append(list, found(OlderNotReady, kind+"/"+object.Name, "the object is not converted: "+why.text(), fix))
	}
	for i := range f.Provisioners {
		p := &f.Provisioners[i]
		add(karpv1alpha5.Kind, &p.ObjectMeta, firstNotTrue(conditionsOf(p.Status.Conditions), karpv1alpha5.ConditionApplied))
	}
	for i := range f.Templates {
		t := &f.Templates[i]
		add(awsv1alpha1.Kind, &t.ObjectMeta, f.unmadeClass(t))
	}
	return list
}

// unmadeClass returns why the class of a template is not correct. It returns nil if it is, or if a user wrote the
// class that cannot be created. Templates belong to AWS: a controller of another provider does not process them.
func (f *Facts) unmadeClass(t *awsv1alpha1.AWSNodeTemplate) *Condition {
	class := karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: t.Name}
	if !f.owns(class) {
		return nil
	}
	conditions := conditionsOf(t.Status.Conditions)
	if why := firstNotTrue(conditions, karpv1alpha5.ConditionApplied); why != nil {
		return why
	}
	if why := firstNotTrue(conditions, karpv1alpha5.ConditionNodeClassReady); why != nil && why.Reason == karpv1alpha5.ReasonNotMade && f.class(class) == nil {
		return why
	}
	return nil
}

// madeFrom returns the older object, in kubectl's format, from which a pool or class is created and maintained, or ""
// if there is none.
func madeFrom(object metav1.Object) string {
	if owner := metav1.GetControllerOf(object); owner != nil && (owner.Kind == karpv1alpha5.Kind || owner.Kind == awsv1alpha1.Kind) {
		return strings.ToLower(owner.Kind) + " " + owner.Name
	}
	return ""
}

// keptAs returns an addition to the fix for an object that is created from an older one: an edit would be reverted.
func keptAs(from string) string {
	if from == "" {
		return ""
	}
	return "; it is created from " + from + ", which reverts edits of it: kubectl edit " + from
}
