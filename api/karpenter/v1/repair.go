package v1

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RepairRules are the settings of node repair of a pool. Its annotations change the defaults of DefaultRepairRules.
//
// +kubebuilder:object:generate=false
type RepairRules struct {
	// Off means that no node of the pool is repaired.
	Off bool
	// Percent is the share of the pool's nodes, rounded up, that may be unhealthy for one of them to be repaired. Count is
	// that number itself if it is not negative.
	Percent, Count int
	// AtOnce is the maximum number of nodes that are repaired at the same time, 0 for no maximum.
	AtOnce int
	// Grace is how long the drain of a node respects PodDisruptionBudgets and karpenter.sh/do-not-disrupt.
	Grace time.Duration
	// Conditions replace the entries of the provider's list with the same type and status, or are added to it.
	Conditions []RepairCondition
}

// RepairCondition is a condition of a node that requires repair once it has lasted for longer than Toleration. Never means
// that it does not require repair.
//
// +kubebuilder:object:generate=false
type RepairCondition struct {
	Type, Status string
	Toleration   time.Duration
	Never        bool
}

// repairPercent is the default share of unhealthy nodes up to which nodes are repaired:
// https://karpenter.sh/docs/concepts/disruption/#node-auto-repair.
const repairPercent = 20

// maxRepairTime limits durations, which are probably mistakes above it.
const maxRepairTime = 365 * 24 * time.Hour

// DefaultRepairRules are those of a pool without annotations, and of a node without a pool.
func DefaultRepairRules() RepairRules { return RepairRules{Percent: repairPercent, Count: -1} }

// MaxUnhealthy returns how many of that many nodes may be unhealthy for one of them to be repaired.
func (r RepairRules) MaxUnhealthy(nodes int) int {
	if r.Count >= 0 {
		return r.Count
	}
	return (nodes*r.Percent + 99) / 100
}

// ParseRepairRules reads the annotations of a pool. An annotation that is invalid is reported and has no effect.
func ParseRepairRules(annotations map[string]string) (RepairRules, field.ErrorList) {
	rules := DefaultRepairRules()
	var errs field.ErrorList
	for _, a := range []struct {
		name string
		read func(*RepairRules, string) error
	}{
		{AnnotationNodeRepair, (*RepairRules).readSwitch},
		{AnnotationRepairThreshold, (*RepairRules).readThreshold},
		{AnnotationRepairAtOnce, (*RepairRules).readAtOnce},
		{AnnotationRepairGrace, (*RepairRules).readGrace},
		{AnnotationRepairConditions, (*RepairRules).readConditions},
	} {
		text, has := annotations[a.name]
		if !has {
			continue
		}
		changed := rules
		if err := a.read(&changed, text); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(a.name), text, err.Error()))
			continue
		}
		rules = changed
	}
	return rules, errs
}

func (r *RepairRules) readSwitch(text string) error {
	if text != "on" && text != "off" {
		return fmt.Errorf(`must be "on" or "off"`)
	}
	r.Off = text == "off"
	return nil
}

func (r *RepairRules) readThreshold(text string) error {
	number, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(number, 10, 31)
	switch {
	case err != nil || isPercent && n > 100:
		return fmt.Errorf(`must be a number of nodes such as "3", or a share from "0%%" to "100%%"`)
	case isPercent:
		r.Percent, r.Count = int(n), -1
	default:
		r.Count = int(n)
	}
	return nil
}

func (r *RepairRules) readAtOnce(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return fmt.Errorf(`must be a number of nodes, 1 or more, such as "1"`)
	}
	r.AtOnce = int(n)
	return nil
}

func (r *RepairRules) readGrace(text string) (err error) {
	r.Grace, err = repairTime(text)
	return err
}

func (r *RepairRules) readConditions(text string) error {
	const form = `must be a list such as "KernelDeadlock=True:10m,NetworkUnavailable=True:never"`
	var list []RepairCondition
	for part := range strings.SplitSeq(text, ",") {
		condition, after, timed := strings.Cut(strings.TrimSpace(part), ":")
		kind, status, equals := strings.Cut(condition, "=")
		known := status == "True" || status == "False" || status == "Unknown"
		if !timed || !equals || kind == "" || !known {
			return fmt.Errorf("%s: %q is no condition, status (True, False or Unknown) and duration", form, part)
		}
		c := RepairCondition{Type: kind, Status: status, Never: after == "never"}
		if !c.Never {
			var err error
			if c.Toleration, err = repairTime(after); err != nil {
				return fmt.Errorf("%s: the duration %q %w", form, after, err)
			}
		}
		list = append(list, c)
	}
	r.Conditions = list
	return nil
}

func repairTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxRepairTime {
		return 0, fmt.Errorf("must be a duration from zero to 8760h, such as 10m")
	}
	return d, nil
}
