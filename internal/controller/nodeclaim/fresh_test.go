package nodeclaim

import (
	"maps"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// TestFreshMachinesHaveNotDrifted verifies that a newly launched machine has not drifted from its pool, because
// otherwise nodes would be replaced endlessly. It uses random requirements on the labels of kwok's types, with
// current and older names, and every offering that a launch may choose for them.
func TestFreshMachinesHaveNotDrifted(t *testing.T) {
	types, _ := kwok.EmbeddedTypes()
	rules, random := karpv1.CoreRules(), rand.New(rand.NewPCG(1, 1))
	bought := 0
	for range 1000 {
		pool := &karpv1.NodePool{}
		for range 1 + random.IntN(4) {
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, randomRequirement(random, types))
		}
		claim := &karpv1.NodeClaim{}
		for _, r := range pool.Spec.Template.Spec.Requirements { // as the planner writes them
			r.Key = rules.Key(r.Key)
			claim.Spec.Requirements = append(claim.Spec.Requirements, r)
		}
		need := cloud.NeedOf(claim)
		choices := need.Choices(types)
		for range min(3, len(choices)) {
			claim.Labels = maps.Clone(need.MachineLabels(choices[random.IntN(len(choices))]))
			gone, err := typeDrift(claim, catalog{types: types})
			switch {
			case cloud.RequirementsDrift(claim, pool, rules):
				t.Fatalf("RequirementsDrift(claim, pool, rules) is true, a machine with labels %v, ) from the requirements it was launched for: %+v", claim.Labels, pool.Spec.Template.Spec.Requirements)
			case gone:
				t.Fatalf("gone is true, a machine with labels %v, ) from the requirements it was launched for: %+v",
					claim.Labels, pool.Spec.Template.Spec.Requirements)
			case err != nil:
				t.Fatalf("error %v, a machine with labels %v, ) from the requirements it was launched for: %+v", err,
					claim.Labels, pool.Spec.Template.Spec.Requirements)
			}
			bought++
		}
	}
	if bought < 400 {
		t.Errorf("only %d machines were launched: the requirements contradict each other too often", bought)
	}
}

// randomRequirement returns a requirement on a label of a random type or offering, with values of several.
func randomRequirement(random *rand.Rand, types []cloud.InstanceType) karpv1.Requirement {
	key, values := "", []string{}
	for range 1 + random.IntN(6) {
		kind := types[random.IntN(len(types))]
		offering := kind.Offerings[random.IntN(len(kind.Offerings))]
		labels := map[string]string{corev1.LabelTopologyZone: offering.Zone, karpv1.LabelCapacityType: offering.CapacityType,
			corev1.LabelInstanceTypeStable: kind.Name}
		for _, r := range kind.Requirements {
			if r.Operator == "In" {
				labels[r.Key] = r.Values[0]
			}
		}
		if key == "" {
			keys := []string{corev1.LabelTopologyZone, karpv1.LabelCapacityType, corev1.LabelArchStable, corev1.LabelOSStable,
				corev1.LabelInstanceTypeStable, "karpenter.kwok.sh/instance-cpu"}
			key = keys[random.IntN(len(keys))]
		}
		if value, has := labels[key]; has {
			values = append(values, value)
		}
	}
	operators := []karpv1.Operator{karpv1.OperatorIn, karpv1.OperatorIn, karpv1.OperatorNotIn, karpv1.OperatorExists,
		karpv1.OperatorDoesNotExist}
	operator := operators[random.IntN(len(operators))]
	if key == "karpenter.kwok.sh/instance-cpu" && random.IntN(2) == 0 {
		operator, values = []karpv1.Operator{karpv1.OperatorGt, karpv1.OperatorLt, karpv1.OperatorGte, karpv1.OperatorLte}[random.IntN(4)],
			values[:1]
	}
	if operator == karpv1.OperatorExists || operator == karpv1.OperatorDoesNotExist {
		values = nil
	}
	older := map[string]string{corev1.LabelArchStable: "beta.kubernetes.io/arch", corev1.LabelTopologyZone: corev1.LabelFailureDomainBetaZone}
	if old, has := older[key]; has && random.IntN(4) == 0 {
		key = old
	}
	return karpv1.Requirement{Key: key, Operator: operator, Values: values}
}
