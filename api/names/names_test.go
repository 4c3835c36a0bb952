package names

import (
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func TestTodaysNames(t *testing.T) {
	for _, c := range []struct {
		table   string
		of      func(string) (string, bool)
		old     string
		today   string
		renamed bool
	}{
		{"label", Label, "karpenter.sh/provisioner-name", "karpenter.sh/nodepool", true},
		{"label", Label, "node.k8s.aws/capacity-type", "karpenter.sh/capacity-type", true},
		{"label", Label, "karpenter.k8s.aws/instance.family", "karpenter.k8s.aws/instance-family", true},
		{"label", Label, "karpenter.k8s.aws/instance.gpu.memory", "karpenter.k8s.aws/instance-gpu-memory", true},
		{"label", Label, "karpenter.sh/nodepool", "karpenter.sh/nodepool", false},
		{"label", Label, "example.com/team", "example.com/team", false},
		{"annotation of pods", PodAnnotation, "karpenter.sh/do-not-evict", "karpenter.sh/do-not-disrupt", true},
		{"annotation of pods", PodAnnotation, "karpenter.sh/do-not-consolidate", "karpenter.sh/do-not-consolidate", false},
		{"annotation of nodes", NodeAnnotation, "karpenter.sh/do-not-consolidate", "karpenter.sh/do-not-disrupt", true},
		{"annotation of nodes", NodeAnnotation, "karpenter.sh/do-not-evict", "karpenter.sh/do-not-evict", false},
		{"annotation of nodes", NodeAnnotation, "karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-disrupt", false},
		{"taint", Taint, "karpenter.sh/disruption", "karpenter.sh/disrupted", true},
		{"policy", ConsolidationPolicy, "WhenUnderutilized", "WhenEmptyOrUnderutilized", true},
		{"policy", ConsolidationPolicy, "WhenEmpty", "WhenEmpty", false},
	} {
		if today, renamed := c.of(c.old); today != c.today || renamed != c.renamed {
			t.Errorf("%s %s: %s, %t; want %s, %t", c.table, c.old, today, renamed, c.today, c.renamed)
		}
	}
}

// TestTheTableIsSound verifies that every old label maps to a label that may be required now, that none is renamed
// twice, and that none is both renamed and gone.
func TestTheTableIsSound(t *testing.T) {
	wellKnown := append(karpv1.CoreRules().WellKnown, awsv1.WellKnownLabels()...)
	for old, today := range Aliases() {
		if !slices.Contains(wellKnown, today) {
			t.Errorf("%s becomes %s, which is not a well-known label", old, today)
		}
		if slices.Contains(wellKnown, old) {
			t.Errorf("%s is a current label", old)
		}
		if _, again := Label(today); again {
			t.Errorf("%s becomes %s, which is an old name itself", old, today)
		}
		if Gone(old) != "" {
			t.Errorf("%s is renamed and gone", old)
		}
	}
	if advice := Gone("karpenter.k8s.aws/instance-pods"); !strings.Contains(advice, "no label") {
		t.Errorf("instance-pods: %q", advice)
	}
}

// TestAliasesAreACopy verifies that the caller owns the returned map.
func TestAliasesAreACopy(t *testing.T) {
	mine := Aliases()
	mine["karpenter.sh/provisioner-name"] = "spoiled"
	if today, _ := Label("karpenter.sh/provisioner-name"); today != karpv1.LabelNodePool {
		t.Errorf("the table has changed: %s", today)
	}
}
