package awsclients

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestScripts runs each script of cases on a simulation of its own.
func TestScripts(t *testing.T) {
	need(t)
	scripts, err := filepath.Glob("scripts/*.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		name := filepath.Base(path)
		if name == "sim.py" || name == "model.py" {
			continue
		}
		t.Run(strings.TrimSuffix(name, ".py"), func(t *testing.T) { start(t).script(name) })
	}
}
