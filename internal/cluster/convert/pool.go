package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Pool converts a pool, except for the fields that depend on the time and on the provider: AddCatalog and Budgets
// set Catalog and the budgets' Inactive.
func Pool(pool *karpv1.NodePool, v *Vocabulary) model.PoolSpec {
	template := &pool.Spec.Template
	spec := model.PoolSpec{
		Name: pool.Name, UID: string(pool.UID), Generation: pool.Generation, Weight: pool.WeightOrZero(),
		Taints: taints(template.Spec.Taints), Limits: limits(pool.Spec.Limits),
		ExpireAfter: pool.Spec.Template.Spec.ExpireAfter.Duration, ConsolidateAfter: -1, Policy: string(pool.Spec.Disruption.ConsolidationPolicy),
	}
	if !pool.Spec.Disruption.ConsolidateAfter.IsNever() {
		spec.ConsolidateAfter = *pool.Spec.Disruption.ConsolidateAfter.Duration
	}
	if spec.Policy == "" {
		spec.Policy = string(karpv1.ConsolidateWhenEmptyOrUnderutilized)
	}
	spec.Policy, _ = names.ConsolidationPolicy(spec.Policy)
	reqs, refused := v.api("spec.template.spec.requirements", template.Spec.Requirements)
	spec.Requirements = slices.Concat(reqs, v.labels(template.ObjectMeta.Labels), v.labels(map[string]string{
		karpv1.LabelNodePool: pool.Name,
		karpv1.NodeClassLabel(template.Spec.NodeClassRef.Group, template.Spec.NodeClassRef.Kind): template.Spec.NodeClassRef.Name,
	}))
	spec.Blocked = blocked(pool, v)
	if spec.Blocked == nil {
		spec.Blocked = refused
	}
	if spec.Static = pool.Static(); spec.Static {
		spec.Replicas = *pool.Spec.Replicas
	}
	spec.ClaimSeries = pool.Annotations[karpv1.AnnotationClaimSeries]
	spec.Pauses = pause.Parse(pool.Annotations[karpv1.AnnotationPauses])
	if refused = addEconomics(&spec, pool.Annotations); spec.Blocked == nil {
		spec.Blocked = refused
	}
	switch undecided := undecided(pool, v); {
	case spec.Blocked == nil && undecided != nil:
		spec.Blocked = undecided
	case !v.Selection.AdmitsPool(pool):
		leave(&spec)
	}
	return spec
}

// undecided rejects a pool whose requirements have a label of the selector: claims could have values that the template
// has not, and be another controller's.
func undecided(pool *karpv1.NodePool, v *Vocabulary) *model.Rejection {
	for i, r := range pool.Spec.Template.Spec.Requirements {
		if v.Selection.Names(r.Key) {
			return refuse(fmt.Sprintf("spec.template.spec.requirements[%d].key", i),
				"--pool-selector names the label %s, which must have one value: set it in spec.template.metadata.labels", r.Key)
		}
	}
	return nil
}

// leave blocks a pool that is another controller's, which reports what is wrong with it. It launches nodes only if nothing
// else blocks the pool: otherwise the pods are those of the next pool that takes them.
func leave(spec *model.PoolSpec) {
	if spec.Blocked == nil {
		spec.Elsewhere = !spec.Static
		spec.Blocked = &model.Rejection{Field: "spec.template.metadata.labels", Reason: "--pool-selector leaves the pool to another controller"}
	}
	spec.Blocked.Silent = true
}

// blocked returns the reason for which no node may be launched from the pool, or nil.
func blocked(pool *karpv1.NodePool, v *Vocabulary) *model.Rejection {
	class := pool.Spec.Template.Spec.NodeClassRef
	switch {
	case !v.Owns(class.Group, class.Kind):
		return &model.Rejection{
			Silent: true, Field: "spec.template.spec.nodeClassRef",
			Reason: fmt.Sprintf("node classes of the kind %s.%s are not of this cloud provider", class.Kind, class.Group),
		}
	case pool.DeletionTimestamp != nil:
		return &model.Rejection{Field: "metadata.deletionTimestamp", Reason: "the pool is being deleted"}
	}
	return notReady(pool)
}

func notReady(pool *karpv1.NodePool) *model.Rejection {
	const field = "status.conditions[Ready]"
	for i := range pool.Status.Conditions {
		c := &pool.Status.Conditions[i]
		if c.Type != "Ready" {
			continue
		}
		if c.Status == metav1.ConditionTrue {
			return nil
		}
		if why := failedConditions(pool); why != "" {
			return &model.Rejection{Field: field, Reason: "the pool is not ready: " + why}
		}
		return &model.Rejection{Field: field, Reason: strings.TrimSuffix(fmt.Sprintf("the pool is not ready: %s: %s", c.Reason, c.Message), ": ")}
	}
	return &model.Rejection{Field: field, Reason: "the pool is not ready: its conditions have not been set yet"}
}

// failedConditions returns the messages of the false conditions behind Ready: Ready itself contains only their names.
func failedConditions(pool *karpv1.NodePool) string {
	var parts []string
	for _, name := range []string{karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady} {
		for i := range pool.Status.Conditions {
			if c := &pool.Status.Conditions[i]; c.Type == name && c.Status == metav1.ConditionFalse && c.Message != "" {
				parts = append(parts, fmt.Sprintf("%s is false: %s: %s", c.Type, c.Reason, c.Message))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// AddCatalog sets the catalog of the pool. A nil catalog blocks the pool with the reason why. A static pool that is
// not blocked otherwise is blocked for pods.
func AddCatalog(spec *model.PoolSpec, catalog *model.Catalog, why string) {
	spec.Catalog = catalog
	if spec.Blocked == nil && (catalog == nil || len(catalog.Types) == 0) {
		spec.Blocked = &model.Rejection{Field: "spec.template", Reason: why}
	}
	if spec.Blocked == nil && spec.Static {
		spec.Blocked = model.StaticBlock()
	}
}

// limits keeps zeros, unlike amounts: a limit of zero means that no node may be launched.
func limits(list corev1.ResourceList) []quantity.Amount {
	if len(list) == 0 {
		return nil
	}
	to := make([]quantity.Amount, 0, len(list))
	for name, q := range list {
		to = append(to, quantity.Amount{Name: string(name), Value: units(name, q, down)})
	}
	slices.SortFunc(to, compareAmounts)
	return to
}

// expired is the engine's name of the reason for nodes that are replaced before expireAfter deletes them.
const expired karpv1.DisruptionReason = "Expired"

// Budgets converts the pool's budgets at the time now, on which Inactive depends
// (https://karpenter.sh/docs/concepts/disruption/#nodepool-disruption-budgets). The second result describes an
// invalid budget, or is empty; the pool then allows no disruption. An unset list is the API's default of 10%. Budgets
// cannot name expiry as a reason: if there are budgets and all of them have reasons, expiry has the default too.
func Budgets(pool *karpv1.NodePool, now time.Time) ([]model.Budget, string) {
	from := pool.Spec.Disruption.Budgets
	silent := len(from) > 0 && !slices.ContainsFunc(from, func(b karpv1.Budget) bool { return len(b.Reasons) == 0 })
	switch {
	case from == nil:
		from = []karpv1.Budget{{Nodes: "10%"}}
	case silent:
		from = append(slices.Clone(from), karpv1.Budget{Nodes: "10%", Reasons: []karpv1.DisruptionReason{expired}})
	}
	budgets := make([]model.Budget, 0, len(from))
	for i := range from {
		budget, err := budgetAt(&from[i], now)
		if err != nil {
			return nil, fmt.Sprintf("spec.disruption.budgets[%d]: %v", i, err)
		}
		budgets = append(budgets, budget)
	}
	return budgets, ""
}

// Scheduled reports whether some budget of the pool changes with time.
func Scheduled(pool *karpv1.NodePool) bool {
	return slices.ContainsFunc(pool.Spec.Disruption.Budgets, func(b karpv1.Budget) bool { return b.Schedule != nil })
}

func budgetAt(from *karpv1.Budget, now time.Time) (model.Budget, error) {
	if _, err := from.Allowed(0); err != nil {
		return model.Budget{}, err
	}
	active, err := from.Active(now)
	if err != nil {
		return model.Budget{}, err
	}
	changes, err := from.Changes(now)
	if err != nil {
		return model.Budget{}, err
	}
	budget := model.Budget{Inactive: !active, Changes: changes}
	for _, reason := range from.Reasons {
		budget.Reasons = append(budget.Reasons, string(reason))
	}
	digits, percent := strings.CutSuffix(from.Nodes, "%")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return model.Budget{}, err
	}
	if budget.IsPercent = percent; percent {
		budget.Percent = n
	} else {
		budget.Count = n
	}
	return budget, nil
}
