package nodepool

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// class holds the data about a pool's node class.
type class struct {
	ref         karpv1.NodeClassReference
	found       bool
	terminating bool
	generation  int64
	// unready is the provider's error, or nil when machines can be launched with the class.
	unready error
}

// validation returns the condition ValidationSucceeded. noTypes names the requirement that excludes all instance types.
// Budgets that cannot be parsed forbid disruption, and do not prevent launches: the condition stays true, and its message
// reports them. The same applies to an expireAfter that is shorter than leastLife, and to rules of node repair that cannot
// be parsed.
func validation(pool *karpv1.NodePool, rules karpv1.LabelRules, noTypes string) status.Condition {
	if problems := karpv1.Validate(pool, rules); len(problems) > 0 {
		return no(karpv1.ConditionValidationSucceeded, karpv1.ReasonNodePoolValidationFailed, problems.ToAggregate().Error())
	}
	if noTypes != "" {
		return no(karpv1.ConditionValidationSucceeded, karpv1.ReasonNoCompatibleInstanceTypes, noTypes)
	}
	var remarks []string
	if problems := karpv1.ValidateBudgets(pool); len(problems) > 0 {
		remarks = append(remarks, "no node may be disrupted: "+problems.ToAggregate().Error())
	}
	if age := pool.Spec.Template.Spec.ExpireAfter.Duration; age != nil && *age < leastLife {
		remarks = append(remarks, fmt.Sprintf("spec.template.spec.expireAfter: a node with a lifetime of %s expires before or soon after "+
			"its pods run, and the next one is launched", *age))
	}
	if _, problems := karpv1.ParseRepairRules(pool.Annotations); len(problems) > 0 {
		remarks = append(remarks, "annotations without effect: "+problems.ToAggregate().Error())
	}
	c := yes(karpv1.ConditionValidationSucceeded)
	c.Message = strings.Join(remarks, "; ")
	return c
}

// leastLife is the expireAfter below which the condition ValidationSucceeded warns: a machine needs minutes to join.
const leastLife = 5 * time.Minute

// classReadiness returns the condition NodeClassReady.
func classReadiness(c class) status.Condition {
	const condition = karpv1.ConditionNodeClassReady
	var notReady *cloud.NodeClassNotReadyError
	switch {
	case !c.found || errors.Is(c.unready, cloud.ErrNotFound):
		return no(condition, karpv1.ReasonNodeClassNotFound,
			fmt.Sprintf("spec.template.spec.nodeClassRef: there is no %s.%s named %q", c.ref.Kind, c.ref.Group, c.ref.Name))
	case c.terminating:
		return no(condition, karpv1.ReasonNodeClassTerminating, fmt.Sprintf("%s %q is being deleted", c.ref.Kind, c.ref.Name))
	case errors.As(c.unready, &notReady) && notReady.Reason != "":
		return no(condition, notReady.Reason, notReady.Message)
	case c.unready != nil:
		return no(condition, karpv1.ReasonNodeClassReadinessUnknown, c.unready.Error())
	}
	return yes(condition)
}

// changedFor reports whether the recorded launches apply to an older version of the pool or its class: the condition
// is missing, or one of the two has a new generation.
func changedFor(pool *karpv1.NodePool, c class) bool {
	have := pool.Condition(karpv1.ConditionNodeRegistrationHealthy)
	return have == nil || have.ObservedGeneration != pool.Generation || pool.Status.NodeClassObservedGeneration != c.generation
}

func yes(condition string) status.Condition {
	return status.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition}
}

func no(condition, reason, message string) status.Condition {
	return status.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}
