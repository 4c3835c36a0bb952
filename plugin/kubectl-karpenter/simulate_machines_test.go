package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// of gives the first node of a text a provider ID.
func of(text, id string) string {
	return strings.Replace(text, "status:\n", "spec: {providerID: "+id+"}\nstatus:\n", 1)
}

// TestNodesOfOneMachine checks that of two nodes of one machine the oldest counts, in whatever order they are read,
// and that the other is reported. Two nodes that belong to no pool both count, and are reported, as by the controller.
func TestNodesOfOneMachine(t *testing.T) {
	elder, other := of(nodeYAML("zebra", "large"), "m-1"), of(strings.Replace(nodeYAML("ape", "large"), "2026-01-01", "2026-01-02", 1), "m-1")
	foreign := func(name string) string {
		return of(strings.Replace(nodeYAML(name, "small"), "karpenter.sh/nodepool: default, ", "", 1), "m-2")
	}
	for name, text := range map[string]string{
		"elder first": elder + other + foreign("other-1") + foreign("other-2"),
		"elder last":  foreign("other-2") + foreign("other-1") + other + elder,
	} {
		t.Run(name, func(t *testing.T) {
			folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": disruptPool, "nodes.yaml": text})
			out, progress, err := runBoth(t, "", "simulate", "-f", folder, "--disrupt")
			want := "Node other-2: spec.providerID: node other-1 has the same; a machine has one node; they have no claim: " +
				"pods may run on both, and neither is removed"
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			want = "Node ape: spec.providerID: node zebra has the same; a machine has one node\n"
			if !strings.HasSuffix(progress, want) || strings.Count(progress, "\n") != 1 {
				t.Errorf("%q is reported, want %q and nothing else", progress, want)
			}
			if !strings.Contains(out, "1     Empty   empty   zebra") || !strings.Contains(out, "1 step: 1 node becomes 0") {
				t.Errorf("the node that counts is not removed:\n%s", out)
			}
		})
	}
}

func TestClaimsOfOneMachine(t *testing.T) {
	claim := func(name, created string) string {
		return "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: " + name + ", creationTimestamp: '" + created + "', labels: {karpenter.sh/nodepool: default}}\n" +
			"spec: {nodeClassRef: {group: example.com, kind: AnyClass, name: default}, requirements: []}\nstatus: {providerID: m-1}\n"
	}
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": disruptPool,
		"all.yaml": claim("young", "2026-02-01T00:00:00Z") + claim("old", "2026-01-01T00:00:00Z") + of(nodeYAML("n", "large"), "m-1")})
	_, err := simulate(t, "", "-f", folder, "--disrupt")
	want := "NodeClaim young: status.providerID: claim old has the same; a machine has one claim"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestClaimWithTheNameOfANode checks that a claim without a node does not count beside another machine's node of its name:
// nodes and claims share one name space in the model, where it would take the place of the node.
func TestClaimWithTheNameOfANode(t *testing.T) {
	claim := "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: host, labels: {karpenter.sh/nodepool: default}}\n" +
		"spec: {nodeClassRef: {group: example.com, kind: AnyClass, name: default}, requirements: []}\nstatus: {providerID: m-2}\n"
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": disruptPool,
		"all.yaml": claim + of(nodeYAML("host", "large"), "m-1")})
	out, err := simulate(t, "", "-f", folder, "--disrupt")
	want := "NodeClaim host: metadata.name: a node of that name exists that is not the claim's; delete one of them"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if !strings.Contains(out, "1 step: 1 node becomes 0") {
		t.Errorf("the node is not removed:\n%s", out)
	}
}

// TestNotices checks that misleading annotations are reported, once for all objects with the same annotation.
func TestNotices(t *testing.T) {
	texts := mixed()
	texts["more.yaml"] = podYAML("soon", "held", "1m", `karpenter.sh/do-not-disrupt: soon`) + podYAML("soon-2",
		"held", "1m", `karpenter.sh/do-not-disrupt: soon`) +
		podYAML("unsaid", "held", "1m", `karpenter.sh/do-not-disrupt: "false"`) + podYAML("fine", "held", "1m",
		`karpenter.sh/do-not-disrupt: 4h`) +
		podYAML("long", "idle-1", "1m", `karpenter.sh/do-not-disrupt: 9999999999999h`) + podYAML("dear", "held", "1m",
		`controller.kubernetes.io/pod-deletion-cost: "1.5"`) +
		strings.Replace(nodeYAML("timed", "large"), "labels: {", "annotations: {karpenter.sh/do-not-disrupt: 4h}\n  labels: {", 1)
	texts["pool.yaml"] = strings.Replace(disruptPool, "metadata: {name: default}",
		`metadata: {name: default, annotations: {karpenter-go.github.io/repair-grace: soon}}`, 1)
	folder := files(t, texts)
	_, progress, err := runBoth(t, "", "simulate", "-f", folder, "--disrupt")
	if err != nil {
		t.Fatal(err)
	}
	want := `pod default/soon and 1 more: annotation karpenter.sh/do-not-disrupt is "soon", want true or a duration such as 30m; it is ignored
pod default/long: annotation karpenter.sh/do-not-disrupt is "9999999999999h", want true or a duration such as 30m; it exceeds the longest duration, so it protects forever
pod default/dear: annotation controller.kubernetes.io/pod-deletion-cost is "1.5", want an integer of 32 bits, such as -100
node timed: annotation karpenter.sh/do-not-disrupt is "4h", want true on a node; it is ignored
pool default: metadata.annotations[karpenter-go.github.io/repair-grace]: Invalid value: "soon": must be a duration from zero to 8760h, such as 10m; it is ignored
`
	if diff := cmp.Diff(want, progress); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	codes := map[string]string{}
	for _, k := range disruptJSON(t, "-f", folder).Kept {
		codes[k.Node] = k.Reasons[0].Code
	}
	if codes["idle-1"] != "NodeProtected" {
		t.Errorf("the node with the pod that is protected forever: %q, want NodeProtected; all: %v", codes["idle-1"], codes)
	}
}

// TestRefusedPDBs checks that a PodDisruptionBudget that the API server would reject is rejected, with the field, and
// that the rest is decided.
func TestRefusedPDBs(t *testing.T) {
	const head = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: "
	const share = `want a number of pods, zero or more, or a percentage from "0%" to "100%"`
	for spec, want := range map[string]string{
		`{selector: {matchLabels: {app: one}}, minAvailable: 1, maxUnavailable: 10%}`:                    "spec.maxUnavailable: is 10% beside spec.minAvailable 1, want one of the two",
		`{selector: {matchLabels: {app: one}}, minAvailable: half}`:                                      `spec.minAvailable: is "half", ` + share,
		`{selector: {matchLabels: {app: one}}, minAvailable: 101%}`:                                      `spec.minAvailable: is "101%", ` + share,
		`{selector: {matchLabels: {app: one}}, maxUnavailable: -1}`:                                      `spec.maxUnavailable: is -1, ` + share,
		`{selector: {matchLabels: {app: one}}, maxUnavailable: "-1%"}`:                                   `spec.maxUnavailable: is "-1%", ` + share,
		`{selector: {matchLabels: {app: one}}, maxUnavailable: "10"}`:                                    `spec.maxUnavailable: is "10", ` + share,
		`{selector: {matchLabels: {app: one}}, maxUnavailable: 1, unhealthyPodEvictionPolicy: Never}`:    `spec.unhealthyPodEvictionPolicy: is "Never", want IfHealthyBudget or AlwaysAllow`,
		`{selector: {matchLabels: {app: -one}}, maxUnavailable: 1}`:                                      "spec.selector.matchLabels",
		`{selector: {matchExpressions: [{key: app, operator: Near, values: [one]}]}, maxUnavailable: 1}`: "spec.selector.matchExpressions[0].operator",
		`{selector: {matchExpressions: [{key: app, operator: In}]}, maxUnavailable: 1}`:                  "spec.selector.matchExpressions[0].values",
		`{selector: {matchLabels: {app: one}}, maxUnavailable: 0}`:                                       "",
		`{selector: {matchLabels: {app: one}}, minAvailable: 0100%}`:                                     "",
		`{maxUnavailable: 0}`: "",
		`{selector: {}}`:      "",
	} {
		texts := mixed()
		texts["pdb.yaml"] = head + spec + "\n"
		out, err := simulate(t, "", "-f", files(t, texts), "--disrupt")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: got %v, want it to be accepted", spec, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "PodDisruptionBudget b: "+want)):
			t.Errorf("%s: got %v, want %q", spec, err, want)
		case want != "" && !strings.Contains(out, "3 steps: 4 nodes become 1"):
			t.Errorf("%s: it is used, or the rest is not decided:\n%s", spec, out)
		}
	}
}
