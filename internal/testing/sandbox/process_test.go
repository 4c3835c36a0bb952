package sandbox

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func asExit(err error, exit **exec.ExitError) bool { return errors.As(err, exit) }

// TestLastLine checks that the line that explains an end is found among usage text, stack traces and JSON.
func TestLastLine(t *testing.T) {
	for name, test := range map[string]struct{ log, want string }{
		"empty":          {"", ""},
		"plain":          {"starting\nout of patience\n\n", "out of patience"},
		"usage after":    {"Error: unknown flag: --x\nUsage:\n  kube-apiserver [flags]\n", "Error: unknown flag: --x"},
		"ordinary":       {"starting\nI1120 11:14:51 1 a.go:4] Caches are synced\n", "starting"},
		"stack trace":    {"panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3\n", "panic: no"},
		"disk full":      {"E1 write wal: no space left on device\npanic: no WAL\n", "E1 write wal: no space left on device"},
		"JSON of etcd":   {`{"level":"fatal","msg":"discovery failed","error":"listen tcp: address already in use"}` + "\n", "discovery failed: listen tcp: address already in use"},
		"JSON, no error": {`{"level":"warn","msg":"slow"}` + "\n", "slow"},
		"very long":      {strings.Repeat("x", 1000), strings.Repeat("x", 300) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			folder := writeFiles(t, t.TempDir(), map[string]string{"log": test.log})
			if got := lastLine(filepath.Join(folder, "log")); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
