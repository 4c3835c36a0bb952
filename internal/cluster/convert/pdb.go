package convert

import (
	"strconv"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// PDB converts a PodDisruptionBudget as the eviction API evaluates it (kubernetes,
// pkg/registry/core/pod/storage/eviction.go): a status that has not observed the newest generation allows nothing.
func PDB(pdb *policyv1.PodDisruptionBudget) model.PDBSpec {
	status, policy := &pdb.Status, pdb.Spec.UnhealthyPodEvictionPolicy
	spec := model.PDBSpec{
		UID: string(pdb.UID), Namespace: pdb.Namespace, Name: pdb.Name,
		Selector:           selector(pdb.Spec.Selector, []string{pdb.Namespace}),
		AlwaysEvictUnready: policy != nil && *policy == policyv1.AlwaysAllow,
		Healthy:            status.DesiredHealthy > 0 && status.CurrentHealthy >= status.DesiredHealthy,
		Blocking:           isZero(pdb.Spec.MaxUnavailable) || isAll(pdb.Spec.MinAvailable),
	}
	if status.ObservedGeneration >= pdb.Generation {
		spec.Allowed = max(0, int64(status.DisruptionsAllowed))
		spec.Full = status.ExpectedPods > 0 && status.DesiredHealthy >= status.ExpectedPods
	}
	return spec
}

func isZero(n *intstr.IntOrString) bool {
	switch {
	case n == nil:
		return false
	case n.Type == intstr.Int:
		return n.IntVal == 0
	}
	percent, ok := percentage(n.StrVal)
	return ok && percent == 0
}

func isAll(n *intstr.IntOrString) bool {
	if n == nil || n.Type == intstr.Int {
		return false
	}
	percent, ok := percentage(n.StrVal)
	return ok && percent >= 100
}

func percentage(text string) (int, bool) {
	digits, has := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	return n, has && err == nil
}
