package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReportFrom writes a report of manifests, without a cluster, in each format.
func TestReportFrom(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "pods.yaml")
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: alone}\nspec: {containers: [{name: c, image: i}]}\n"
	if err := os.WriteFile(file, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{"html": "<!doctype html>", "markdown": "# Karpenter: ", "md": "## Why pending",
		"json": `"pod": "default/alone"`} {
		out, err := runProgram(t, "", "report", "--from", file, "-o", format)
		if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "default/alone") {
			t.Errorf("-o %s: %v\n%s", format, err, out)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte(pod+"---\nkind: Pod\napiVersion: v1\nmetadata: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runProgram(t, "", "report", "--from", broken, "-o", "json")
	if err == nil || !strings.Contains(err.Error(), "metadata.name is missing") || !strings.Contains(out, "problems") {
		t.Errorf("of a file that is readable in part: %v\n%s", err, out)
	}
}

// TestReportUsage checks what is wrong with a command line.
func TestReportUsage(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for arguments, want := range map[string]string{
		"": "want one of --live", "--live --from x.json": "want one of --live", "--live -o text": "--output is", "--live": "no cluster",
		"--from missing.json": "missing.json", "--live --payback -1h": "--payback",
	} {
		if _, err := runProgram(t, "", append([]string{"report"}, strings.Fields(arguments)...)...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", arguments, err, want)
		}
	}
}

// reports checks that the report of the cluster has the finding that its pool is not ready.
func (c *clinic) reports() {
	c.t.Helper()
	c.poolReady(metav1.ConditionFalse)
	defer c.poolReady(metav1.ConditionTrue)
	command := newReportCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"--kubeconfig", c.kubeconfig, "--live", "-o", "json"})
	c.must(command.ExecuteContext(c.t.Context()))
	var report struct {
		Doctor struct {
			Rows   []struct{ Code, Object, Fix string }
			Looked map[string]int
		}
	}
	c.must(json.Unmarshal(out.Bytes(), &report))
	found := false
	for _, row := range report.Doctor.Rows {
		found = found || row.Code == "PoolNotReady" && strings.Contains(row.Object, "general") && row.Fix != ""
	}
	if !found || report.Doctor.Looked["nodePools"] != 1 {
		c.t.Errorf("the report has %+v", report.Doctor)
	}
}
