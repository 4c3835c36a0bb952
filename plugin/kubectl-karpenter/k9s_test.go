package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// k9sPlugin is an entry of k9s' plugins.yaml, with the fields of its schema
// (https://github.com/derailed/k9s/blob/master/internal/config/json/schemas/plugins.json) that the file uses.
type k9sPlugin struct {
	ShortCut, Description, Command string
	Scopes, Args                   []string
	Background                     bool
}

// TestK9sPlugins runs the commands of docs/k9s-plugins.yaml as k9s does, with a kubectl that prints its arguments, and
// checks that the plugin accepts them and explains the selected object of the selected context.
func TestK9sPlugins(t *testing.T) {
	text, err := os.ReadFile("../../docs/k9s-plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Plugins map[string]k9sPlugin }
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Plugins) < 5 {
		t.Fatalf("%d plugins, want those of pods, nodes and pools, top and doctor", len(file.Plugins))
	}
	path := t.TempDir()
	for name, script := range map[string]string{"kubectl": "#!/bin/sh\nprintf '%s\\n' \"$@\"\n", "less": "#!/bin/sh\nexec cat\n"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	selected := strings.NewReplacer("$NAMESPACE", "shop", "$NAME", "web-1", "$CONTEXT", "arn:aws:eks:eu-west-1:1:cluster/my fleet")
	taken := map[string]string{}
	for name, plugin := range file.Plugins {
		var args []string
		for _, arg := range plugin.Args {
			args = append(args, selected.Replace(arg))
		}
		command := exec.CommandContext(t.Context(), plugin.Command, args...)
		if plugin.Command == "kubectl" {
			command.Path = filepath.Join(path, "kubectl")
		}
		command.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		given := strings.Split(strings.TrimSpace(string(out)), "\n")
		found, rest, err := newRootCommand().Find(given[1:])
		if err != nil || given[0] != "karpenter" || !found.Runnable() {
			t.Fatalf("%s runs kubectl %q: %v", name, given, err)
		}
		if err := found.ParseFlags(rest); err != nil {
			t.Errorf("%s runs kubectl %q: %v", name, given, err)
		}
		if context := found.Flags().Lookup("context").Value.String(); context != "arn:aws:eks:eu-west-1:1:cluster/my fleet" {
			t.Errorf("%s selects the context %q", name, context)
		}
		if err := found.ValidateArgs(found.Flags().Args()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(name, "explain") && !strings.HasSuffix(strings.Join(found.Flags().Args(), " "), "web-1") {
			t.Errorf("%s explains %q", name, found.Flags().Args())
		}
		for _, scope := range plugin.Scopes {
			if other := taken[plugin.ShortCut+scope]; other != "" {
				t.Errorf("%s and %s have the same key on %s", name, other, scope)
			}
			taken[plugin.ShortCut+scope] = name
		}
	}
}
