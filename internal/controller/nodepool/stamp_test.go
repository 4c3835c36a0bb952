package nodepool

import (
	"testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestRestamp verifies that a hash of another version is updated, and that a hash by which the claim is known to have
// drifted is kept. A missing hash is always written: otherwise the claim could never be compared again.
func TestRestamp(t *testing.T) {
	for _, test := range []struct {
		name          string
		hash, version string
		reason        string // of Drifted
		want          string
		changes       bool
	}{
		{"of today", "1", karpv1.HashVersion, "", "1", false},
		{"of before", "1", "karpenter-go-v2", "", "new", true},
		{"of before, and drifted by it", "1", "karpenter-go-v2", karpv1.ReasonNodePoolDrifted, "1", true},
		{"of before, and drifted otherwise", "1", "karpenter-go-v2", karpv1.ReasonRequirementsDrifted, "new", true},
		{"none", "", "", "", "new", true},
		{"none, and drifted by it", "", "", karpv1.ReasonNodePoolDrifted, "new", true},
		{"none but a version", "", karpv1.HashVersion, "", "new", true},
	} {
		claim := &karpv1.NodeClaim{}
		claim.Annotations = map[string]string{karpv1.AnnotationNodePoolHash: test.hash, karpv1.AnnotationNodePoolHashVersion: test.version}
		if test.reason != "" {
			claim.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, test.reason, test.reason)
		}
		changes := restamp(claim, "new")
		switch hash, version := claim.Annotations[karpv1.AnnotationNodePoolHash], claim.Annotations[karpv1.AnnotationNodePoolHashVersion]; {
		case hash != test.want:
			t.Errorf("%s: hash is %v, want %v", test.name, hash, test.want)
		case version != karpv1.HashVersion:
			t.Errorf("%s: version is %v, want %v", test.name, version, karpv1.HashVersion)
		case changes != test.changes:
			t.Errorf("%s: changes is %v, want %v", test.name, changes, test.changes)
		}
	}
}
