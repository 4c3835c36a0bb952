package scratch

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const prefix = "scratch-test-"

// holder is the variable that makes this program a child that holds a folder until it is killed.
const holder = "SCRATCH_TEST_HOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(holder) != "" {
		folder, err := New(prefix)
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(folder.Path + "\n")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until our parent ends us, or ends
		return
	}
	os.Exit(m.Run())
}

// TestKilled holds that the folder of a process stays while it runs and goes after it was killed.
func TestKilled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holder+"=1")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	held := strings.TrimSpace(line)

	first := open(t)
	if _, err := os.Stat(held); err != nil {
		t.Errorf("the folder of a process that runs: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed, and says so
	second := open(t)
	if _, err := os.Stat(held); !os.IsNotExist(err) {
		t.Errorf("the folder of a process that was killed: %v, want it gone", err)
	}
	for _, f := range []*Folder{first, second} {
		if _, err := os.Stat(f.Path); err != nil {
			t.Errorf("a folder of this process: %v", err)
		}
		if err := f.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
			t.Errorf("a removed folder: %v", err)
		}
	}
}

// TestKeep holds that of a failed run the logs stay, for a day.
func TestKeep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := open(t)
	for _, file := range []string{"karpenter", "shared.log", "shared/etcd/member/wal/0.wal", "shared/logs/etcd.log", "shared/logs/etcd.log.previous", "shared/kubeconfig"} {
		path := filepath.Join(f.Path, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	want := []string{"shared", "shared.log", "shared/logs", "shared/logs/etcd.log", "shared/logs/etcd.log.previous"}
	if diff := cmp.Diff(want, contents(t, f.Path)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}

	sweep(prefix, time.Now().Add(keptFor-time.Hour))
	if _, err := os.Stat(f.Path); err != nil {
		t.Errorf("logs of today: %v", err)
	}
	other := filepath.Join(os.TempDir(), "else-"+prefix)
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(prefix, time.Now().Add(keptFor+time.Hour))
	if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
		t.Errorf("logs of yesterday: %v, want them gone", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a folder of another name: %v", err)
	}
}

func open(t *testing.T) *Folder {
	t.Helper()
	f, err := New(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func contents(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != root {
			paths = append(paths, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}
