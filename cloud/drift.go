package cloud

import (
	"fmt"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// StaticDrift reports whether the template's labels, annotations, taints, kind of class, grace period or expiry have
// changed since the claim was created. A hash of another version cannot be compared: until package nodepool has
// written the claim's hash again, the previous result holds, and StaticDrift returns ErrUnstamped. The hash on
// the pool is not used, because the pool's hash is computed here. A class of another kind needs no hash, and a
// controller that would write one may be missing.
func StaticDrift(claim *karpv1.NodeClaim, pool *karpv1.NodePool) (bool, error) {
	made, wanted := claim.Spec.NodeClassRef, pool.Spec.Template.Spec.NodeClassRef
	switch {
	case wanted.Group == "" || wanted.Kind == "": // as in an older version that is not converted
		return false, fmt.Errorf("pool %q does not name the kind of its class, want spec.template.spec.nodeClassRef.group and kind", pool.Name)
	case made.Group != wanted.Group || made.Kind != wanted.Kind:
		return true, nil
	}
	hash, version := claim.Annotations[karpv1.AnnotationNodePoolHash], claim.Annotations[karpv1.AnnotationNodePoolHashVersion]
	if hash != "" && version == karpv1.HashVersion {
		return hash != pool.Hash(), nil
	}
	if known := claim.Condition(karpv1.ConditionDrifted); known.IsTrue() && known.Reason == karpv1.ReasonNodePoolDrifted {
		return true, nil
	}
	return false, fmt.Errorf("comparing the pool's hash of claim %q, of version %q: %w", claim.Name, version, ErrUnstamped)
}

// RequirementsDrift reports whether the claim's labels violate the current requirements of the pool. A label that the
// claim does not have is absent, well-known or not.
func RequirementsDrift(claim *karpv1.NodeClaim, pool *karpv1.NodePool, rules karpv1.LabelRules) bool {
	for _, r := range pool.Spec.Template.Spec.Requirements {
		key := rules.Key(r.Key)
		values := make([]string, len(r.Values))
		for i, value := range r.Values {
			values[i] = rules.Value(key, value)
		}
		wanted := AnyValue().Narrow(string(r.Operator), values)
		value, has := claim.Labels[key]
		if has && !wanted.Has(rules.Value(key, value)) || !has && !wanted.HasAbsence() {
			return true
		}
	}
	return false
}
