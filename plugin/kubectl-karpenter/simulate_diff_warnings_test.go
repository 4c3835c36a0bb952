package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// TestSimulateDiffRefuses checks that nothing is compared, and nothing printed, with manifests that no API server would
// have: of a kind that is misspelled, without any object, or that the API server refuses.
func TestSimulateDiffRefuses(t *testing.T) {
	good := diffPool("general", "base", 999)
	budget := "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {selector: {}, SPEC}\n"
	for name, c := range map[string]struct{ now, want string }{
		"kind": {strings.Replace(good, "kind: NodePool", "kind: Nodepool", 1),
			"kind: is Nodepool, which karpenter.sh does not have, want NodeClaim, NodeOverlay, NodePool; did you mean NodePool?"},
		"class": {"apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClas\nmetadata: {name: a}\n",
			"did you mean EC2NodeClass?"},
		"quota": {"apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityQouta\nmetadata: {name: a}\n",
			"did you mean CapacityQuota?"},
		"other kind": {"apiVersion: karpenter.sh/v1\nkind: Deployment\nmetadata: {name: a}\n", "kind: is Deployment"},
		"empty":      {"", "new.yaml: has no object"},
		"comment":    {"# helm\n---\n", "new.yaml: has no object"},
		"negative": {strings.Replace(budget, "SPEC", "maxUnavailable: -1", 1),
			"PodDisruptionBudget web: spec.maxUnavailable: is -1"},
		"both":           {strings.Replace(budget, "SPEC", "maxUnavailable: 1, minAvailable: 1", 1), "want one of the two"},
		"wrong selector": {strings.Replace(budget, "selector: {}, SPEC", "selector: {matchLabels: {a: -}}", 1), "spec.selector"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"markdown", "text", "json"} {
				out, err := diffOf(t, good, c.now, "-o", format, "--exit-code")
				if cli.ExitCode(err) != 2 || !strings.Contains(fmt.Sprint(err), c.want) || out != "" {
					t.Errorf("-o %s: error %v, want code 2 and %q; printed %q", format, err, c.want, out)
				}
			}
			if _, err := diffOf(t, c.now, good); cli.ExitCode(err) != 2 {
				t.Errorf("as OLD: error %v, want code 2", err)
			}
		})
	}
	for name, now := range map[string]string{
		"no pool is left": "apiVersion: v1\nkind: List\nitems: []\n",
		"once ours":       "apiVersion: karpenter.k8s.aws/v1beta1\nkind: AWSNodeTemplate\nmetadata: {name: a}\n",
		"of kwok":         "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n",
		"not ours":        "apiVersion: autoscaling.x-k8s.io/v1\nkind: ProvisioningRequest\nmetadata: {name: a}\n",
		"of another":      "apiVersion: autoscaling.x-k8s.io/v1\nkind: Later\nmetadata: {name: a}\n",
		"Kubernetes":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	} {
		if out, err := diffOf(t, good, now); err != nil || !strings.HasPrefix(out, "NodePool general present -> absent") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestSimulateDiffTells checks the warnings about what the figures lack, and about requirements that look misspelled.
func TestSimulateDiffTells(t *testing.T) {
	good := diffPool("general", "base", 999)
	with := func(requirement string) string {
		return strings.Replace(good, "requirements: [", "requirements: ["+requirement+", ", 1)
	}
	typo := with("{key: kubernetes.io/arch, operator: In, values: [amd64, arm46]}")
	const value = "NodePool general: value arm46 of requirement kubernetes.io/arch matches no instance type: did you mean arm64?"
	const static = "static NodePools (fixed) are not counted, because the feature gate StaticCapacity is off: " +
		"--feature-gates StaticCapacity=true counts them, as a controller does that has it on"
	for name, c := range map[string]struct {
		old, now string
		flags    []string
		want     []string
	}{
		"value":     {good, typo, nil, []string{value}},
		"as before": {typo, typo, nil, nil},
		"key": {good, with("{key: kubernetes.io/arhc, operator: In, values: [amd64]}"), nil,
			[]string{"NodePool general: requirement kubernetes.io/arhc is not on a well-known label: did you mean kubernetes.io/arch?"}},
		"own label":       {good, with("{key: example.com/arch, operator: In, values: [a]}"), nil, nil},
		"replicas":        {good + "---\n" + staticPool(2, "a"), good + "---\n" + staticPool(5, "a"), nil, []string{static}},
		"new static pool": {good, good + "---\n" + staticPool(5, "a"), nil, []string{static}},
		"same replicas":   {good + "---\n" + staticPool(2, "a"), good + "---\n" + staticPool(2, "a"), nil, nil},
		"gate": {good + "---\n" + staticPool(2, "a"), good + "---\n" + staticPool(5, "a"),
			[]string{"--feature-gates", "StaticCapacity=true"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := diffOf(t, c.old, c.now, append(c.flags, "-o", "json")...)
			var a offline.DiffAnswer
			if err == nil {
				err = json.Unmarshal([]byte(out), &a)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, a.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if counted := a.New.PricePerHour > a.Old.PricePerHour; name == "gate" && !counted {
				t.Errorf("with the gate, %+v becomes %+v, want more", a.Old, a.New)
			}
			text, err := diffOf(t, c.old, c.now, c.flags...)
			if head, _, _ := strings.Cut(text, "\n\n"); err != nil || len(c.want) > 0 && !strings.Contains(head, c.want[0]) {
				t.Errorf("%v; the text begins\n%s", err, head)
			}
		})
	}
}
