package doctor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// gated returns findings about objects that no controller reads, because the feature gate of their kind is off.
func gated(f *Facts, _ Options) []cloud.Finding {
	var overlays, buffers []string
	for i := range f.Overlays {
		overlays = append(overlays, f.Overlays[i].Name)
	}
	for i := range f.Buffers {
		if b := &f.Buffers[i]; len(b.Status.Conditions) == 0 || b.Status.ReadyReplicas != nil { // otherwise another autoscaler processes it
			buffers = append(buffers, b.Namespace+"/"+b.Name)
		}
	}
	var list []cloud.Finding
	for _, kind := range []struct {
		schema.GroupResource
		gate  string
		names []string
	}{
		{schema.GroupResource{Group: karpv1.Group, Resource: "nodeoverlays"}, karpv1alpha1.Kind, overlays},
		{schema.GroupResource{Group: autoscalingv1beta1.Group, Resource: "capacitybuffers"}, autoscalingv1beta1.Kind, buffers},
	} {
		if off := f.gateOff(kind.gate); len(kind.names) > 0 && len(off) > 0 {
			list = append(list, found(GateOff, kind.String(),
				fmt.Sprintf("the %ss %s have no effect, because the feature gate %s of %s is off", kind.gate, few(kind.names), kind.gate, few(off)),
				fmt.Sprintf("enable it (chart: settings.featureGates.%s=true; FEATURE_GATES=%s=true), or delete the objects",
					strings.ToLower(kind.gate[:1])+kind.gate[1:], kind.gate)))
		}
	}
	return list
}

// queueless returns a finding if pools ask for replacements at rebalance recommendations, and no controller has a queue from
// which it would hear of these.
func queueless(f *Facts, _ Options) []cloud.Finding {
	var names []string
	for i := range f.Pools {
		if f.Pools[i].Annotations[karpv1.AnnotationRebalance] != "" {
			names = append(names, f.Pools[i].Name)
		}
	}
	hears := slices.ContainsFunc(f.Controllers, func(c Controller) bool {
		return c.Provider() != "aws" || c.Settings["INTERRUPTION_QUEUE"] != "" || c.Open
	})
	if len(names) == 0 || len(f.Controllers) == 0 || hears {
		return nil
	}
	return []cloud.Finding{found(QueueNotSet, f.Controllers[0].object(),
		fmt.Sprintf("the annotation %s of NodePools %s has no effect, because no interruption queue is set", karpv1.AnnotationRebalance,
			few(names)),
		"set --interruption-queue (chart: settings.interruptionQueue), or remove the annotation")}
}

// rooms returns findings about buffers that get no room for a reason that time does not change. Those without a number of
// ready pods are processed by another autoscaler.
func rooms(f *Facts, _ Options) []cloud.Finding {
	if len(f.gateOff(autoscalingv1beta1.Kind)) > 0 {
		return nil
	}
	var list []cloud.Finding
	for i := range f.Buffers {
		b := &f.Buffers[i]
		name := b.Namespace + "/" + b.Name
		resolved := meta.FindStatusCondition(b.Status.Conditions, autoscalingv1beta1.ConditionReadyForProvisioning)
		placed := meta.FindStatusCondition(b.Status.Conditions, autoscalingv1beta1.ConditionProvisioning)
		switch {
		case b.Status.ReadyReplicas == nil || b.DeletionTimestamp != nil:
		case resolved != nil && resolved.Status == metav1.ConditionFalse:
			list = append(list, found(BufferNotReady, "capacitybuffer/"+name, "no room is made: "+resolved.Reason+": "+resolved.Message,
				"correct what the CapacityBuffer refers to: kubectl describe capacitybuffer -n "+b.Namespace+" "+b.Name))
		case placed != nil && placed.Reason == autoscalingv1beta1.ReasonInfeasible:
			list = append(list, found(BufferNotReady, "capacitybuffer/"+name, placed.Message,
				"kubectl karpenter explain buffer "+name+" says what excludes each NodePool"))
		}
	}
	return list
}

// gateOff returns the controllers if the feature gate of all of them is off.
func (f *Facts) gateOff(gate string) []string {
	var off []string
	for k := range f.Controllers {
		c := &f.Controllers[k]
		if on, known := c.gate(gate); on || !known {
			return nil
		}
		off = append(off, c.object())
	}
	return off
}
