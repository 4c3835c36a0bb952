package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestCalledAs checks that a call by kubectl is distinguished from a call by the program's own name.
func TestCalledAs(t *testing.T) {
	for _, c := range []struct{ program, shell, want string }{
		{"/usr/local/bin/kubectl-karpenter", "/usr/bin/kubectl", plugin},
		{"/usr/local/bin/kubectl-karpenter", "", plugin},
		{"/usr/local/bin/kubectl-karpenter", "/usr/local/bin/kubectl-karpenter", "kubectl-karpenter"},
		{"kubectl-karpenter", "/usr/local/bin/kubectl-karpenter", "kubectl-karpenter"},
		{"bin/kubectl-karpenter", "bin/kubectl-karpenter", "kubectl-karpenter"},
		{"/opt/karpenterctl", "", "karpenterctl"},
	} {
		if got := calledAs(c.program, c.shell); got != c.want {
			t.Errorf("%s with _=%s: %q, want %q", c.program, c.shell, got, c.want)
		}
	}
}

// TestHelpShowsTheForm checks that usage, long texts and examples name the program in the form by which it was called.
func TestHelpShowsTheForm(t *testing.T) {
	for _, form := range []string{plugin, "kubectl-karpenter"} {
		root := newRootCommand()
		callAs(root, form)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"simulate", "--help"})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"  " + form + " simulate -f FILE|DIR|- ... | --live | --diff OLD NEW [flags]\n", "  " + form + " simulate -f pools.yaml", "| " + form + " simulate -f - -o json\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", form, want, out.String())
			}
		}
	}
}

// TestForeignPool checks that the verbs print why the running controller does not serve a pool of another provider.
func TestForeignPool(t *testing.T) {
	const why = "node classes of the kind EC2NodeClass.karpenter.k8s.aws are not of the cloud provider of the running controller (kwok)"
	kubeconfig := served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: cloud, uid: pool-uid}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
status:
  conditions:
  - {type: NodeClassReady, status: "False", reason: OtherProvider, message: "` + why + `", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Ready, status: "False", reason: UnhealthyDependents, message: NodeClassReady=False, lastTransitionTime: "2026-01-01T00:00:00Z"}
`,
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses": "metadata: {name: default, uid: class-uid}\nspec: {}\n",
		"/api/v1/pods": "metadata: {name: waiting, namespace: default, uid: uid-waiting, creationTimestamp: \"2026-01-01T00:00:00Z\"}\n" +
			"spec: {containers: [{name: c, image: i}]}\nstatus: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]}\n",
	})
	for _, verb := range []string{"explain pod default/waiting", "explain pool cloud", "top --once"} {
		out, err := runProgram(t, "", append(strings.Fields(verb), "--kubeconfig", kubeconfig)...)
		if !strings.Contains(strings.Join(strings.Fields(out), " "), why) {
			t.Errorf("%s ended with %v and printed\n%s", verb, err, out)
		}
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
