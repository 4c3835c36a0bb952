package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandLine checks that invalid input gives one clear line on standard error and exit code 2, and failed work
// exit code 1. There is never a stack trace.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.yaml")
	write(t, broken, "clusters: [unclosed")
	unreachable := filepath.Join(folder, "unreachable.yaml")
	write(t, unreachable, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {}}]}`)
	missing := filepath.Join(folder, "missing.yaml")
	types := filepath.Join(folder, "types.json")
	write(t, types, `[{"name": "broken"`)
	for _, test := range []struct {
		name      string
		arguments []string
		code      int
		says      []string
	}{
		{"unknown verb", []string{"buy"}, 2, []string{"buy"}},
		{"unknown flag", []string{"controller", "--no-such-flag"}, 2, []string{"no-such-flag"}},
		{"unexpected argument", []string{"demo", "now"}, 2, []string{"now"}},
		{"bad number", []string{"demo", "--replicas=many"}, 2, []string{"replicas", "many"}},
		{"number out of range", []string{"demo", "--replicas=0"}, 2, []string{"--replicas", "0"}},
		{"missing assets", []string{"demo", "--binaries", filepath.Join(folder, "none"), "--data-dir", filepath.Join(folder, "demo")},
			2, []string{"none"}},
		{"missing kubeconfig", []string{"controller", "--cloud-provider=kwok", "--kubeconfig", missing}, 2, []string{missing}},
		{"broken kubeconfig", []string{"controller", "--cloud-provider=kwok", "--kubeconfig", broken}, 2, []string{"kubeconfig"}},
		{"unreachable API server", []string{"controller", "--cloud-provider=kwok", "--kubeconfig", unreachable}, 1, []string{"127.0.0.1:1"}},
		{"unknown provider", []string{"controller", "--cloud-provider=moon"}, 2, []string{"moon", "kwok"}},
		{"unknown timer", []string{"controller", "--cloud-provider=kwok", "--timers=nap=1s"}, 2, []string{"nap"}},
		{"misspelled gate", []string{"controller", "--cloud-provider=kwok", "--feature-gates=NodeOverlay=on"}, 2, []string{"NodeOverlay"}},
		{"missing instance types", []string{"controller", "--cloud-provider=kwok", "--kubeconfig", common.sandbox.Kubeconfig(),
			"--instance-types-file-path", missing}, 2, []string{missing}},
		{"broken instance types", []string{"controller", "--cloud-provider=kwok", "--kubeconfig", common.sandbox.Kubeconfig(),
			"--instance-types-file-path", types}, 2, []string{types}},
		{"no sandbox", []string{"kubeconfig", "--data-dir", filepath.Join(folder, "empty")}, 1, []string{"no sandbox"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			arguments := test.arguments
			if arguments[0] == "controller" { // the default ports may be taken by another process
				arguments = append(arguments, "--metrics-port=0", "--health-probe-port=0")
			}
			program := binary
			if arguments[0] == "demo" || arguments[0] == "kubeconfig" {
				program = sandboxed
			}
			command := exec.CommandContext(t.Context(), program, arguments...)
			command.Env = append(os.Environ(), "KUBECONFIG=")
			var output, complaint bytes.Buffer
			command.Stdout, command.Stderr = &output, &complaint
			err := command.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != test.code {
				t.Errorf("it ended with %v, want exit code %d", err, test.code)
			}
			said := complaint.String()
			if prefix := filepath.Base(program) + ": "; !strings.HasPrefix(said, prefix) || strings.Count(said, "\n") != 1 {
				t.Errorf("it printed %q, want one line that begins with %q", said, prefix)
			}
			if !containsAll(said, test.says) {
				t.Errorf("it printed %q, want it to name %q", said, test.says)
			}
			if strings.Contains(said+output.String(), "goroutine ") {
				t.Errorf("it printed a stack trace")
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
