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

// holder is the environment variable that makes this program a child that holds a folder until it is killed.
const holder = "SCRATCH_TEST_HOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(holder) != "" {
		folder, err := New(prefix)
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(folder.Path + "\n")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent ends this process, or ends itself
		return
	}
	os.Exit(m.Run())
}

// TestKilled checks that the folder of a process exists while it runs and is removed after it was killed.
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
		t.Fatalf("the child printed %q: %v", line, err)
	}
	held := strings.TrimSpace(line)

	first := open(t)
	if _, err := os.Stat(held); err != nil {
		t.Errorf("the folder of a process that runs: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed, so Wait returns an error
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

// TestKeep checks that the logs of a failed run are kept for a day.
func TestKeep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := open(t)
	for _, file := range []string{"karpenter", "shared.log", "shared/etcd/member/wal/0.wal", "shared/logs/etcd.log", "shared/logs/etcd.log.previous", "shared/kubeconfig"} {
		write(t, filepath.Join(f.Path, file), file)
	}
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	want := []string{marker, "shared", "shared.log", "shared/logs", "shared/logs/etcd.log", "shared/logs/etcd.log.previous"}
	if diff := cmp.Diff(want, contents(t, f.Path)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	sweep(time.Now().Add(keptFor - time.Hour))
	if _, err := os.Stat(f.Path); err != nil {
		t.Errorf("logs of today: %v", err)
	}
	sweep(time.Now().Add(keptFor + time.Hour))
	if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
		t.Errorf("logs of yesterday: %v, want them gone", err)
	}
}

// sweepers are the two implementations that remove the folders of ended runs.
var sweepers = map[string]func(t *testing.T){
	"New": func(t *testing.T) {
		if err := open(t).Remove(); err != nil {
			t.Fatal(err)
		}
	},
	"the script": func(t *testing.T) {
		if _, err := exec.LookPath("flock"); err != nil {
			t.Skip(err)
		}
		if output, err := exec.Command(filepath.Join("..", "..", "..", ".ci", "scratch"), "true").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	},
}

// TestSweep checks that folders with a valid marker are removed, and that other folders are kept, whatever their
// names and ages.
func TestSweep(t *testing.T) {
	old := time.Now().Add(-30 * 24 * time.Hour)
	for who, sweeps := range sweepers {
		for name, c := range map[string]struct {
			marker string // "" for none
			since  time.Time
			gone   bool
		}{
			"karpenter-e2e-killed":  {"karpenter-e2e-killed\n", old, true},
			"karpenter-e2e-now":     {"karpenter-e2e-now\n", time.Now(), true},
			"karpenter-e2e-failed":  {"karpenter-e2e-failed\nkept\n", old, true},
			"karpenter-e2e-today":   {"karpenter-e2e-today\nkept\n", time.Now().Add(-23 * time.Hour), false},
			"karpenter-bench-mine":  {"", old, false},
			"karpenter-e2e-copied":  {"karpenter-e2e-killed\n", old, false},
			"karpenter-e2e-renamed": {"karpenter-e2e-failed\nkept\n", old, false},
			"sandboxtest":           {"something else", old, false},
		} {
			t.Run(who+"/"+name, func(t *testing.T) {
				base := t.TempDir()
				t.Setenv("TMPDIR", base)
				folder := filepath.Join(base, name)
				data := filepath.Join(folder, "data", "of.log")
				write(t, data, "")
				if c.marker != "" {
					write(t, filepath.Join(folder, marker), c.marker)
				}
				link := filepath.Join(base, "link")
				if err := os.Symlink(folder, link); err != nil {
					t.Fatal(err)
				}
				for _, path := range contents(t, base) {
					if err := os.Chtimes(filepath.Join(base, path), c.since, c.since); err != nil {
						t.Fatal(err)
					}
				}
				sweeps(t)
				if _, err := os.Stat(data); os.IsNotExist(err) != c.gone {
					t.Errorf("%v, want it gone: %v", err, c.gone)
				}
				if _, err := os.Stat(folder); os.IsNotExist(err) != c.gone {
					t.Errorf("%v, want it gone: %v", err, c.gone)
				}
				if _, err := os.Lstat(link); err != nil {
					t.Errorf("a link: %v", err)
				}
			})
		}
	}
}

// TestHeld checks that the folder of a running process is not removed.
func TestHeld(t *testing.T) {
	for who, sweeps := range sweepers {
		t.Run(who, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			f := open(t)
			defer f.Remove()
			sweeps(t)
			if diff := cmp.Diff([]string{marker}, contents(t, f.Path)); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScript checks what happens to a command's folder for temporary files, also when the script is terminated.
func TestScript(t *testing.T) {
	const notify = `echo x > "$TMPDIR/a.log"; echo x > "$TMPDIR/data"; `
	for name, c := range map[string]struct {
		command string
		code    int
		left    []string
	}{
		"passes":           {notify + "exit 0", 0, nil},
		"fails":            {notify + "exit 3", 3, []string{marker, "a.log"}},
		"fails, no logs":   {`echo x > "$TMPDIR/data"; exit 3`, 3, nil},
		"the script ends":  {notify + `(trap "" HUP; sleep 600) & kill -TERM "$PPID"; wait`, 143, []string{marker, "a.log"}},
		"it does not obey": {notify + `trap "" TERM; kill -TERM "$PPID"; while true; do sleep 600; done`, 143, []string{marker, "a.log"}},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			t.Setenv("TMPDIR", base)
			script := exec.Command(filepath.Join("..", "..", "..", ".ci", "scratch"), "bash", "-c", c.command)
			output, err := script.CombinedOutput()
			if code := script.ProcessState.ExitCode(); code != c.code {
				t.Errorf("code %d (%v), want %d\n%s", code, err, c.code, output)
			}
			folders, err := filepath.Glob(filepath.Join(base, "*"))
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, folder := range folders {
				left = append(left, contents(t, folder)...)
			}
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
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
