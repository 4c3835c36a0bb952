package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	once sync.Once
	path string
	err  error
}

// karpenter builds the binary, once, and returns its path.
func karpenter(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		directory, err := os.MkdirTemp("", "karpenter-chart-")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(directory, "karpenter")
		command := exec.Command("go", "build", "-o", built.path, "./cmd/karpenter")
		command.Dir = filepath.Join("..", "..")
		if output, err := command.CombinedOutput(); err != nil {
			t.Logf("%s", output)
			built.err = err
		}
	})
	if built.err != nil {
		t.Fatalf("building karpenter: %v", built.err)
	}
	return built.path
}
