package doctor

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Finding is a problem, with the findings that follow from it.
type Finding struct {
	cloud.Finding
	// Follows lists findings that this one explains. They disappear with it.
	Follows []cloud.Finding `json:"follows,omitempty"`
}

// order is the order of the codes in a report: causes before possible consequences. Codes that are not listed, which
// are those of clouds, have the place of "".
var order = []string{
	UpstreamRuns, ClockSkew, "CloudUnreachable", "CloudClockSkew", DefinitionMissing, DefinitionDiffers, PermissionMissing,
	PolicyOutdated, "CloudPermissionDenied", WebhookBroken,
	ControllerNotReady, ElectionNotExclusive, LeaderMissing, LeaderSilent, "", ClassMissing, ClassNotReady, OtherProvider,
	StaticCapacityOff, GateOff, QueueNotSet, PoolNotReady, PoolMissing, PoolAtLimit, BudgetUnreadable, BufferNotReady,
	QuotaWithoutEffect, QuotaExceeded, OlderNotReady,
	ConversionBroken, SchedulerFails, RemovalsPaused, Paused, DrainBlocked, ClaimNotLaunched, ClaimNotRegistered, ClaimNotInitialized, ClaimNotTerminated, ClaimMismatched, FinalizerOrphaned, OlderNotReleased, KubernetesUntried, CannotLook,
}

func rankOf(code string) int {
	if at := slices.Index(order, code); at >= 0 {
		return at
	}
	return slices.Index(order, "")
}

// Arrange returns the findings in the order of a report, causes first, with each consequence below its cause.
func Arrange(f *Facts, found []cloud.Finding) []Finding {
	sorted := slices.Clone(withPolicy(found))
	slices.SortStableFunc(sorted, func(a, b cloud.Finding) int {
		return cmp.Or(cmp.Compare(rankOf(a.Code), rankOf(b.Code)), strings.Compare(a.Code, b.Code), strings.Compare(a.Object, b.Object))
	})
	list := []Finding{}
	for _, finding := range sorted {
		at := slices.IndexFunc(list, func(cause Finding) bool { return f.follows(finding, cause.Finding) })
		if at < 0 {
			list = append(list, Finding{Finding: finding})
		} else {
			list[at].Follows = append(list[at].Follows, finding)
		}
	}
	return list
}

// leaderless reports whether a finding means that no controller is active.
func leaderless(code string) bool {
	return code == ControllerNotReady || code == LeaderMissing || code == LeaderSilent
}

// follows reports whether a finding is explained by another one.
func (f *Facts) follows(symptom, cause cloud.Finding) bool {
	_, name, _ := strings.Cut(symptom.Object, "/")
	switch symptom.Code {
	case LeaderMissing, LeaderSilent:
		return cause.Code == ControllerNotReady
	case CannotLook:
		return symptom.Object == itsPermissions && (leaderless(cause.Code) || cause.Code == ElectionNotExclusive)
	case ConversionBroken:
		return leaderless(cause.Code) && f.byController(name)
	case ClaimNotLaunched, ClaimNotRegistered, ClaimNotInitialized, OlderNotReleased:
		return leaderless(cause.Code)
	case ClaimNotTerminated:
		return leaderless(cause.Code) || cause.Code == DrainBlocked && f.drains(cause, name)
	case CloudPermissionDenied:
		return cause.Code == PolicyOutdated && slices.Contains(sinceOld, symptom.Object)
	case ClassNotReady:
		return leaderless(cause.Code) && f.unobserved(symptom.Object) || cause.Object == symptom.Object && cause.Code != ClassNotReady
	case ClassMissing:
		return cause.Code == DefinitionMissing && f.poolHas(name, func(ref karpv1.NodeClassReference) bool {
			return strings.HasSuffix(cause.Object, "."+ref.Group)
		})
	case OtherProvider:
		return cause.Code == ControllerNotReady && f.poolHas(name, func(ref karpv1.NodeClassReference) bool {
			return f.providerOfController(cause.Object) == ProviderOf(ref.Group)
		})
	case PoolNotReady:
		return leaderless(cause.Code) && f.unobserved(symptom.Object) || (cause.Code == ClassNotReady || cause.Code == ClassMissing) && f.poolHas(name, func(ref karpv1.NodeClassReference) bool {
			return cause.Object == strings.ToLower(ref.Kind)+"/"+ref.Name
		}) && f.onlyForClass(name)
	}
	return false
}

// CloudPermissionDenied is the code of clouds for a missing permission of the controller.
const CloudPermissionDenied = "CloudPermissionDenied"

// ProviderOf returns the provider whose node classes are of a group, as a value of --cloud-provider, or "" for an
// unknown group.
func ProviderOf(group string) string {
	switch group {
	case awsv1.Group:
		return "aws"
	case kwokv1alpha1.Group:
		return "kwok"
	}
	return ""
}

func (f *Facts) providerOfController(object string) string {
	for i := range f.Controllers {
		if f.Controllers[i].object() == object {
			return f.Controllers[i].Provider()
		}
	}
	return ""
}

// drains reports whether a finding of DrainBlocked is about the node of a claim.
func (f *Facts) drains(blocked cloud.Finding, claim string) bool {
	nodes := f.draining[strings.TrimPrefix(blocked.Object, "poddisruptionbudget/")]
	return slices.ContainsFunc(f.Claims, func(c karpv1.NodeClaim) bool {
		return c.Name == claim && c.Status.NodeName != "" && slices.Contains(nodes, c.Status.NodeName)
	})
}

// unobserved reports whether the conditions of a pool or class wait for a controller: Ready is unknown.
func (f *Facts) unobserved(object string) bool {
	unknown := func(conditions []Condition) bool {
		c := firstNotTrue(conditions, "Ready")
		return c != nil && c.Status == string(metav1.ConditionUnknown)
	}
	kind, name, _ := strings.Cut(object, "/")
	if kind == "nodepool" {
		return slices.ContainsFunc(f.Pools, func(p karpv1.NodePool) bool { return p.Name == name && unknown(conditionsOf(p.Status.Conditions)) })
	}
	return slices.ContainsFunc(f.Classes, func(c Class) bool {
		return strings.ToLower(c.Kind.Kind) == kind && c.Name == name && unknown(c.Conditions)
	})
}

// poolHas reports whether there is a pool with this name and a class for which wanted returns true.
func (f *Facts) poolHas(name string, wanted func(karpv1.NodeClassReference) bool) bool {
	return slices.ContainsFunc(f.Pools, func(p karpv1.NodePool) bool {
		return p.Name == name && wanted(p.Spec.Template.Spec.NodeClassRef)
	})
}

// onlyForClass reports whether only its node class prevents a pool from being ready.
func (f *Facts) onlyForClass(name string) bool {
	return slices.ContainsFunc(f.Pools, func(p karpv1.NodePool) bool {
		return p.Name == name && firstNotTrue(conditionsOf(p.Status.Conditions), karpv1.ConditionValidationSucceeded) == nil
	})
}
