package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// completed returns what the shell offers for the last of the words.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	out, err := runProgram(t, "", append([]string{"__complete"}, words...)...)
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-1]; last != ":4" {
		t.Errorf("%q: the directive is %s, want :4, no names of files", words, last)
	}
	list := []string{}
	for _, line := range lines[:len(lines)-1] {
		name, _, _ := strings.Cut(line, "\t")
		list = append(list, name)
	}
	return list
}

// completedCluster is a cluster with objects of each kind whose names are completed.
func completedCluster(t *testing.T) string {
	named := func(names ...string) string {
		text := ""
		for _, name := range names {
			text += "metadata: {name: " + name + "}\n---\n"
		}
		return text
	}
	return served(t, map[string]string{
		"/api/v1/namespaces":                          named("default", "shop"),
		"/api/v1/nodes":                               named("n1", "n2"),
		"/api/v1/namespaces/default/pods":             named("web-0", "web-1", "worker-0"), // two pages
		"/api/v1/namespaces/shop/pods":                named("cart-0"),
		"/apis/karpenter.sh/v1/nodepools":             named("default", "gpu"),
		"/apis/karpenter.sh/v1/nodeclaims":            named("n1", "n3"),
		"/apis/apps/v1/namespaces/shop/deployments":   named("cart"),
		"/apis/apps/v1/namespaces/shop/statefulsets":  named("db"),
		"/apis/apps/v1/namespaces/shop/replicasets":   named("cart-5d4f"),
		"/apis/batch/v1/namespaces/shop/jobs":         named("report-1"),
		"/apis/batch/v1/namespaces/shop/cronjobs":     named("report"),
		"/apis/apps/v1/namespaces/default/daemonsets": named("log"),
	})
}

// TestCompleteNames checks the names of objects in a cluster, in each form in which a command accepts them.
func TestCompleteNames(t *testing.T) {
	t.Setenv("KUBECONFIG", completedCluster(t))
	for line, want := range map[string]string{
		"explain pod ":                   "web-0 web-1 worker-0",
		"explain pod we":                 "web-0 web-1",
		"explain po -n shop ":            "cart-0",
		"explain pod shop/":              "shop/cart-0",
		"explain pod web-0 ":             "",
		"explain pod/wo":                 "pod/worker-0",
		"explain -n shop po/":            "po/cart-0",
		"explain node ":                  "n1 n2 n3",
		"explain pool g":                 "gpu",
		"explain nodepool.karpenter.sh/": "nodepool.karpenter.sh/default nodepool.karpenter.sh/gpu",
		"explain deployment -n shop ":    "cart",
		"explain sts -n shop ":           "db",
		"explain rs -n shop ":            "cart-5d4f",
		"explain job -n shop ":           "report-1",
		"explain pods -n ":               "default shop",
		"top --namespace s":              "shop",
		"top ":                           "",
	} {
		if diff := cmp.Diff(strings.Fields(want), completed(t, strings.Split(line, " ")...)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", line, diff)
		}
	}
}

// TestCompleteFlags checks the values of flags that need no cluster.
func TestCompleteFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", twoContexts(t))
	for line, want := range map[string]string{
		"top -o ":                           "text wide name json yaml",
		"explain node -o ":                  "text wide name json yaml",
		"simulate --output ":                "text wide json yaml",
		"top --sort p":                      "pods price pool",
		"top --by ":                         "namespace workload label",
		"history --by ":                     "day hour",
		"simulate --preference-policy ":     "Ignore Respect",
		"explain pool --min-values-policy ": "BestEffort Strict",
		"doctor --cloud-provider ":          "aws kwok",
		"top --context ":                    "a b",
		"top --cluster ":                    "east west",
		"top --user ":                       "ann ben",
		"simulate --payback ":               "",
	} {
		got := completed(t, strings.Split(line, " ")...)
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", line, diff)
		}
	}
}

// TestCompleteFiles checks that the shell completes the names of files where a flag or an argument is one.
func TestCompleteFiles(t *testing.T) {
	for _, line := range []string{"simulate -f ", "simulate --capture ", "replay ", "top --kubeconfig "} {
		out, err := runProgram(t, "", append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if err != nil || out != ":0\n" {
			t.Errorf("%q: %v, got %q", line, err, out)
		}
	}
}

// TestCompleteWithoutCluster checks that completion offers nothing, and does not fail, if no cluster answers.
func TestCompleteWithoutCluster(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if got := completed(t, "explain", "pool", ""); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// TestCompletionOfKubectl checks that the program that kubectl runs is executable, and asks the plugin.
func TestCompletionOfKubectl(t *testing.T) {
	const script = "kubectl_complete-karpenter"
	about, err := os.Stat(script)
	if err != nil || about.Mode()&0o111 == 0 {
		t.Errorf("%v, the mode is not that of a program", err)
	}
	text, err := os.ReadFile(script)
	if err != nil || !strings.Contains(string(text), `kubectl karpenter __complete "$@"`) {
		t.Errorf("%v\n%s", err, text)
	}
}
