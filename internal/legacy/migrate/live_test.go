package migrate

import (
	"strings"
	"testing"
)

const liveDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  uid: 5f
  resourceVersion: "7"
  generation: 3
  annotations:
    deployment.kubernetes.io/revision: "2"
  managedFields:
  - manager: kubectl
spec:
  replicas: 5
  selector:
    matchLabels: {a: b}
  template:
    metadata:
      labels: {a: b}
    spec:
      nodeSelector: {karpenter.sh/provisioner-name: a}
      containers:
      - {name: c, image: i}
status:
  readyReplicas: 5
`

// TestLive compares the output for objects of a cluster.
func TestLive(t *testing.T) {
	both := liveDeployment + "---\n" + poolWith("v1", "",
		none) + "---\napiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata:\n  name: k\n  uid: 6f\nspec: {}\n"
	for _, workloads := range []bool{false, true} {
		result := Run([]File{{Name: "the cluster", Text: []byte(both), Live: true}}, Options{Workloads: workloads})
		out := string(result.Manifests)
		for _, field := range []string{"uid", "resourceVersion", "generation", "revision", "managedFields", "replicas",
			"status", "eadyReplicas"} {
			if strings.Contains(out, field) {
				t.Errorf("with workloads %t it printed %s:\n%s", workloads, field, out)
			}
		}
		for part, want := range map[string]bool{"kind: NodePool": true, "kind: KWOKNodeClass": true, "kind: Deployment": workloads,
			"karpenter.sh/nodepool: a": workloads} {
			if strings.Contains(out, part) != want {
				t.Errorf("with workloads %t it printed %q: %t\n%s", workloads, part, !want, out)
			}
		}
		switch {
		case result.Report.Count(Advice) != 1:
			t.Errorf("result.Report.Count(Advice) is %v, want 1, with workloads %t", result.Report.Count(Advice), workloads)
		case !strings.Contains(result.Report.Text(), "applying it restarts its pods"):
			t.Errorf("result.Report.Text() lacks \"applying it restarts its pods\", with workloads %t, )\n%s", workloads, result.Report.Text())
		case !result.Changed:
			t.Errorf("result.Changed is false, with workloads %t", workloads)
		}
	}
}

// TestLiveOfToday verifies that fields that the API server added to current objects are omitted from the output, and
// do not count as changes.
func TestLiveOfToday(t *testing.T) {
	added := strings.Replace(poolWith("v1", "", none), "metadata:\n", "metadata:\n  uid: 5f\n  generation: 3\n", 1)
	for live, changed := range map[bool]bool{true: false, false: true} {
		result := Run([]File{{Name: "pools", Text: []byte(added), Live: live}}, Options{})
		switch {
		case strings.Contains(string(result.Manifests), "uid: 5f"):
			t.Errorf("live %t: string(result.Manifests) contains \"uid: 5f\"\n%s, %s", live, result.Report.Text(), result.Manifests)
		case result.Changed != changed:
			t.Errorf("live %t: result.Changed is %v, want %v\n%s", live, result.Changed, changed, result.Report.Text())
		case len(result.Report[0].Notes) > 0 != changed:
			t.Errorf("live %t: len(result.Report[0].Notes) > 0 is %v, want %v\n%s", live, len(result.Report[0].Notes) > 0,
				changed, result.Report.Text())
		}
	}
}
