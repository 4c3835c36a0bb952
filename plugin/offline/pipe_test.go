package offline

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes checks that a named pipe in the file system is rejected instead of waited for, and that a pipe that the
// process inherited is read.
func TestPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("a named pipe: %v", err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := to.WriteString("a: b"); err != nil {
		t.Fatal(err)
	}
	to.Close()
	if data, err := ReadFile(fmt.Sprintf("/dev/fd/%d", from.Fd())); err != nil || string(data) != "a: b" {
		t.Errorf("an inherited pipe is read as %q: %v", data, err)
	}
}

// TestDeepText checks that text that is nested too deeply is rejected before it is parsed.
func TestDeepText(t *testing.T) {
	var block strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&block, "%sa:\n", strings.Repeat("  ", i))
	}
	for name, text := range map[string]string{
		"block": block.String(), "lists": strings.Repeat("- ", 1100) + "a", "flow": strings.Repeat("{a: ", 1100) + "b" + strings.Repeat("}", 1100), "JSON": strings.Repeat("[", 1100) + strings.Repeat("]", 1100),
	} {
		if _, err := ReadText(bytes.NewReader([]byte(text)), 0, LargestFile); err == nil || !strings.Contains(err.Error(), "nested more than 1000 deep") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadText(strings.NewReader("a:\n  b: |\n"+strings.Repeat(" ", 500)+"text ["+strings.Repeat("-", 80)), 0, LargestFile); err != nil {
		t.Errorf("ordinary text: %v", err)
	}
}
