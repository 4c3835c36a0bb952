package chart

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/scratch"
)

var built struct {
	once   sync.Once
	folder *scratch.Folder
	path   string
	err    error
}

// karpenter builds the binary once and returns its path.
func karpenter(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.folder, built.err = scratch.New("karpenter-chart-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.folder.Path, "karpenter")
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
